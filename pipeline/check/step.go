package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// optimizing is a step on the mean gradient of several views.
type optimizing struct {
	t      *trial
	views  []*backward
	start  *ref.Model[float32]
	beside [][][3]float32 // of each view and splat: absolute gradients, and that by the inverse of the depth
	step   int
	with   adamVariant
	c      ref.AdamConfig
}

// stepOf makes a step: a model with moments and statistics as after some steps. Rows above the view's SH degree have
// never been trained.
func (t *trial) stepOf(b []*backward, step int, with adamVariant) *optimizing {
	s := &optimizing{t: t, views: b, start: ref.NewModel(b[0].p.Clone()), step: step, with: with, c: ref.DefaultAdam}
	if with.batch {
		s.c = s.c.Batch(len(b))
	}
	m := s.start
	for i := range m.N {
		for r := range ref.ParamRows(b[0].v.SHDegree) {
			// Second moments of at least 0.5 make the step a smooth function of the gradient.
			*m.M.At(r, i), *m.V.At(r, i) = float32(t.NormFloat64()), float32(0.5+t.Float64())
		}
		if m.Grad2D[i], m.Count[i] = t.Float32(), float32(t.IntN(50)); with.noise > 0 {
			m.LogitOpacities[i] -= 5 // the gate is open
		}
	}
	for range b {
		x := make([][3]float32, max(1, m.N))
		for i := range x {
			if x[i] = [3]float32{t.Float32(), 3 * t.Float32()}; with.depth {
				x[i][2] = float32(20 * t.NormFloat64())
			}
		}
		s.beside = append(s.beside, x)
	}
	return s
}

// checkStep takes one step with gradients of very different sizes, as the chain rule gives them.
func checkStep(t *trial, b []*backward, step int, with adamVariant) {
	s := t.stepOf(b, step, with)
	d := s.run()
	if with.failed != 0 {
		d.untouched()
		return
	}
	compare, want := compareStep, s.want()
	if d.Mixed {
		compare = compareMixedStep
	}
	compare(d.download(want.N, want.Degree), want, with)
	d.restUntouched(want.N, ref.ParamRows(b[0].v.SHDegree))
}

// run has the kernels take the step.
func (s *optimizing) run() *model {
	d := s.t.upload(s.start, chunkSplats, 1)
	for _, b := range s.views {
		b.see(s.start.Params.Clone()) // as it was uploaded
	}
	if s.with.batch {
		s.dispatchBatch(d)
	} else {
		s.dispatch(d)
	}
	s.t.run()
	return d
}

func (s *optimizing) dispatch(d *model) {
	t, b, with := s.t, s.views[0], s.with
	params, counters := in(t, s.params(b.v)), in(t, b.counters(with.failed)...)
	keys := in(t, b.proj.DepthKeys...)
	for part := uint32(0); with.apart && part < unseenParts; part++ {
		d.dispatch(128*unseenParts, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
			return &shaders.AdamUnseen{Params: params, Counters: counters, DepthKeys: keys, Chunk: chunk,
				Mixed: d.Mixed, Spec: shaders.AdamUnseenSpec{Noise: with.noise > 0},
				Push: shaders.AdamUnseenPush{FirstId: first, ChunkSplats: chunkSplats, NParams: uint32(d.NParams),
					Part: part, NParts: unseenParts}}
		})
	}
	pass := shaders.ProjectBwdAdam{Params: params, Counters: counters, DepthKeys: keys, VProjected: in(t,
		gradientsOf(b.grad)...), Paints: in(t, b.paints()...), VAbsMean2d: in(t, absOf(s.beside[0])...), Mixed: d.Mixed,
		Spec: shaders.ProjectBwdAdamSpec{Absgrad: with.absgrad, Noise: with.noise > 0, UnseenApart: with.apart}}
	beside, lens := in(t, s.beside[0]...), t.lensOf(b.v)
	d.dispatch(128, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		p := pass
		p.Chunk = chunk
		p.Push = shaders.ProjectBwdAdamPush{FirstId: first, ChunkSplats: chunkSplats, NParams: uint32(d.NParams)}
		switch {
		case with.depth:
			return vk.Derive(&p, func(p *shaders.ProjectBwdAdamDepth) { p.VBeside = beside })
		case b.v.Lens == nil:
			return &p
		}
		return vk.Derive(&p, func(p *shaders.ProjectBwdAdamLens) { p.Lens, p.Spec.Shutter = lens, b.v.Motion != nil })
	})
}

// dispatchBatch records the step of several views, whose gradients are packed as devices send them.
func (s *optimizing) dispatchBatch(d *model) {
	t, with, from := s.t, s.with, s.pack()
	var params []layout.StepParams
	for _, b := range s.views {
		params = append(params, s.params(b.v))
	}
	// The scene has the splats that the penalties are of, or those of this device alone.
	counters := s.views[0].counters(with.failed)
	if counters[layout.NTotal] = uint32(s.start.N); with.penalties.Splats > 0 {
		counters[layout.NTotal] = uint32(with.penalties.Splats)
	}
	pass := shaders.ProjectBwdAdamViews{Params: in(t, params...), Counters: in(t, counters...), IndexOf: in(t,
		from.indexOf...), VViews: in(t, from.grads...), VAbsViews: in(t, absOf(from.beside)...), Mixed: d.Mixed,
		Spec: shaders.ProjectBwdAdamViewsSpec{Absgrad: with.absgrad, Noise: with.noise > 0,
			NViews: uint32(len(s.views))}}
	beside := in(t, from.beside...)
	d.dispatch(128, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		p := pass
		p.Chunk = chunk
		p.Push = shaders.ProjectBwdAdamViewsPush{FirstId: first, ChunkSplats: chunkSplats, NParams: uint32(d.NParams),
			IndexStride: uint32(from.indexStride), GradStride: uint32(from.gradStride)}
		if !with.depth {
			return &p
		}
		return vk.Derive(&p, func(p *shaders.ProjectBwdAdamViewsDepth) { p.VBesideViews = beside })
	})
}

// packed are the gradients of all views as devices send them, with what no kernel may read between them.
type packed struct {
	indexOf     []uint32
	grads       []layout.ProjectedGrad
	beside      [][3]float32
	indexStride int
	gradStride  int
}

// pack packs the gradients of splats that the views see.
func (s *optimizing) pack() packed {
	p := packed{indexStride: s.start.N + 5, gradStride: s.start.N + 3}
	for w, view := range s.views {
		packet, index := ref.SendVisible(view.proj)
		p.indexOf = append(append(p.indexOf, index...), 0, 0, 0, 0, 0)
		splats := make([]ref.Projected[float32], len(packet.Splats))
		grads := make([]ref.ProjectedGrad[float32], len(packet.Splats))
		for i, k := range index {
			if k != layout.Culled {
				copy(splats[k].Color[:], ref.ConvertSlice[float32](packet.Splats[k].Color[:]))
				grads[k] = view.grad[i]
				p.beside = append(p.beside, s.beside[w][i])
			}
		}
		p.grads = append(p.grads, gradientsOf(ref.SendGrads(splats, grads))...)
		for len(p.grads) < (w+1)*p.gradStride {
			p.grads = append(p.grads, layout.ProjectedGrad{Mean2d: [2]float32{nan, nan},
				Conic: [3]float32{nan, nan, nan}, Opacity: nan, Color: [3]float32{nan, nan, nan}})
			p.beside = append(p.beside, [3]float32{nan, nan, nan})
		}
	}
	return p
}

// absOf are the absolute gradients of what comes beside gradients.
func absOf(beside [][3]float32) [][2]float32 {
	abs := make([][2]float32, len(beside))
	for i, x := range beside {
		abs[i] = [2]float32(x[:2])
	}
	return abs
}

// params are the kernels' parameters of the step on a view.
func (s *optimizing) params(v *ref.View[float32]) layout.StepParams {
	p, c, with := paramsOf(v), s.c, s.with
	rates.Put(&p)
	p.OpacityReg, p.ScaleReg = float32(with.penalties.Opacity), float32(with.penalties.Scale)
	p.NoiseScale, p.Shell = float32(with.noise), float32(with.shell)
	p.Step, p.SeedLo, p.SeedHi = adamStep, adamSeed&0xFFFFFFFF, adamSeed>>32
	p.InvBias1 = float32(1 / (1 - math.Pow(c.Beta1, float64(s.step))))
	p.InvSqrtBias2 = float32(1 / math.Sqrt(1-math.Pow(c.Beta2, float64(s.step))))
	if with.batch {
		p.BatchBeta1, p.BatchRest1 = float32(c.Beta1), float32(1-c.Beta1)
		p.BatchBeta2, p.BatchRest2, p.BatchEps = float32(c.Beta2), float32(1-c.Beta2), float32(c.Eps)
	}
	return p
}

func (s *optimizing) want() *ref.Model[float64] {
	p, want := ref.ConvertParams[float64](s.views[0].p), model64(s.start)
	depth := ref.NewParams[float64](p.N, p.Degree)
	var views []*ref.View[float64]
	var proj []*ref.Projection[float64]
	var grads [][]ref.ProjectedGrad[float64]
	for w, b := range s.views {
		views = append(views, ref.ConvertView[float64](b.v))
		proj, grads = append(proj, b.proj), append(grads, b.grad64())
		if s.with.depth {
			var inverse []float64
			for _, x := range s.beside[w] {
				inverse = append(inverse, float64(x[2]))
			}
			ref.AddInverseDepthGrads(depth, p, views[w], b.proj, inverse)
		}
	}
	g := ref.ProjectBwdViews(p, views, proj, grads)
	for i, x := range depth.Means {
		g.Means[i] += x / float64(len(views))
	}
	before, units := slices.Clone(want.Means), ref.ShellUnits(&want.Params, s.with.shell)
	ref.Penalise(g, &want.Params, s.with.penalties, units)
	ref.AdamModel(want, g, rates, s.c, s.step)
	ref.WidenSteps(&want.Params, before, units)
	if s.with.noise > 0 {
		ref.Explore(&want.Params, s.with.noise, units, adamSeed, adamStep)
	}
	for w, stat := range grads {
		for i := range stat {
			if s.with.absgrad {
				stat[i][0], stat[i][1] = float64(s.beside[w][i][0]), float64(s.beside[w][i][1])
			}
		}
		ref.Statistics(want, views[w], proj[w], stat)
	}
	return want
}

// compareStep allows what compareParams allows of the gradients: a hundredth of the largest of a splat's tensor, of
// which a tenth goes to the first moments and, squared, a thousandth to the second.
func compareStep(got *ref.Model[float32], want *ref.Model[float64], with adamVariant) {
	for k, w := range want.M.Tensors() {
		largest := func(i int) float64 {
			x := 1.0
			for _, m := range w.Data[i/w.Width*w.Width : (i/w.Width+1)*w.Width] {
				x = max(x, math.Abs(m))
			}
			return x
		}
		m, v := got.M.Tensors()[k].Data, got.V.Tensors()[k].Data
		wantX, wantV := want.Tensors()[k].Data, want.V.Tensors()[k].Data
		nearBy("chunk.first moments of "+w.Name, m, w.Data, func(i int) float64 { return 1e-3 * largest(i) })
		nearBy("chunk.second moments of "+w.Name, v, wantV,
			func(i int) float64 { return 2e-3*math.Abs(wantV[i]) + 1e-3*largest(i)*largest(i) })
		nearBy("chunk."+w.Name, got.Tensors()[k].Data, wantX,
			func(i int) float64 {
				limit := 2e-6*math.Abs(wantX[i]) + 2e-4*largest(i)/math.Sqrt(wantV[i]+0.5)
				if k == 0 { // the means
					limit += with.noise * sampledWithin(&want.Params, i/3, 2)
				}
				return limit
			})
		nearNorm("chunk.first moments of "+w.Name, m, w.Data, 1e-4)
		nearNorm("chunk.second moments of "+w.Name, v, wantV, 1e-3)
	}
	compareStatistics(got, want)
}

func compareStatistics(got *ref.Model[float32], want *ref.Model[float64]) {
	near("chunk.grad2d", got.Grad2D, want.Grad2D, 1e-6, 1e-5)
	near("chunk.count", got.Count, want.Count, 0, 0)
}

// backward is one call of project_bwd or project_bwd_adam.
type backward struct {
	p    *ref.Params[float32]
	v    *ref.View[float32]
	proj *ref.Projection[float64]
	grad []ref.ProjectedGrad[float32] // of the projections
}

// backward makes random splats and gradients. The reference decides which splats are visible.
func (t source) backward(n, degree int, v *ref.View[float32]) *backward {
	return t.backwardOf(t.splats(n, degree), v)
}

// backwardOf does so for given splats.
func (t source) backwardOf(p *ref.Params[float32], v *ref.View[float32]) *backward {
	b := &backward{v: v}
	b.see(p)
	for range p.N {
		var g ref.ProjectedGrad[float32]
		for k := range g {
			g[k] = float32(t.NormFloat64())
		}
		b.grad = append(b.grad, g)
	}
	return b
}

// see gives b other splats, and keeps the gradients.
func (b *backward) see(p *ref.Params[float32]) {
	b.p, b.proj = p, ref.Project(ref.ConvertParams[float64](p), ref.ConvertView[float64](b.v))
}

// want is the reference's gradients, in float64.
func (b *backward) want() *ref.Params[float64] {
	return ref.ProjectBwd(ref.ConvertParams[float64](b.p), ref.ConvertView[float64](b.v), b.proj, b.grad64())
}

// paints are the output of project; colours decide where gradients pass the clamp.
func (b *backward) paints() [][4]float32 {
	out := make([][4]float32, b.p.N)
	for i, s := range b.proj.Splats {
		copy(out[i][1:], ref.ConvertSlice[float32](s.Color[:]))
	}
	return out
}

func (b *backward) grad64() []ref.ProjectedGrad[float64] {
	out := make([]ref.ProjectedGrad[float64], len(b.grad))
	for i, g := range b.grad {
		copy(out[i][:], ref.ConvertSlice[float64](g[:]))
	}
	return out
}

// bwdModes calls f for pinhole and fisheye, plain and antialiased, and SH degrees up to the model's.
func bwdModes(t *trial, f func(degree int, v *ref.View[float32])) {
	eachOf(indices(8), func(mode int) {
		v := t.camera(123, 83)
		v.Fisheye, v.Antialiased, v.SHDegree = mode&1 != 0, mode&2 != 0, mode%4
		f(max(v.SHDegree, 3*(mode/4)), v)
	})
}

func projectBwdCases() []Case {
	return casesOf("project_bwd", table{
		{"sizes", over([]int{0, 1, 255, 256, 257, chunkSplats - 1, chunkSplats, chunkSplats + 1, 1000},
			func(t *trial, n int) { checkProjectBwd(t, t.backward(n, 0, t.camera(123, 83)), 0) })},
		{"cameras, antialiasing, SH degrees", func(t *trial) {
			bwdModes(t, func(degree int, v *ref.View[float32]) { checkProjectBwd(t, t.backward(300, degree, v), 0) })
		}},
		{"a failed unit writes nothing", func(t *trial) {
			checkProjectBwd(t, t.backward(400, 1, t.camera(123, 83)), layout.FailedIsects)
		}},
	})
}

func (b *backward) counters(failed uint32) []uint32 {
	return junkCounters(counts{layout.NActive: uint32(b.p.N), layout.NSplats: uint32(b.p.N), layout.Failed: failed})
}

func checkProjectBwd(t *trial, b *backward, failed uint32) {
	m, rows := t.upload(ref.NewModel(b.p), chunkSplats, 1), ref.ParamRows(b.p.Degree)
	pass := shaders.ProjectBwd{Params: in(t, paramsOf(b.v)), Counters: in(t, b.counters(failed)...),
		DepthKeys: in(t, b.proj.DepthKeys...), VProjected: in(t, gradientsOf(b.grad)...), Paints: in(t, b.paints()...)}
	var outs []vk.Slice[float32]
	m.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		p := pass
		p.Chunk, p.VParams = chunk, scratch[float32](t, rows*chunkSplats)
		p.Push = shaders.ProjectBwdPush{FirstId: first, ChunkSplats: chunkSplats}
		outs = append(outs, p.VParams)
		return &p
	})
	t.run()
	m.untouched()
	grads := ref.NewParams[float32](b.p.N, b.p.Degree)
	for i, s := range outs {
		for k, x := range got(t, s) {
			id, row := i*chunkSplats+k%chunkSplats, k/chunkSplats
			none := failed != 0 || id >= b.p.N || row >= ref.ParamRows(b.v.SHDegree)
			if none != (math.Float32bits(x) == guardWord) {
				failf("binding v_params: chunk %d: [%d]: got %g: row %d of splat %d; written: %v", i, k, x, row, id,
					none)
			}
			if !none {
				*grads.At(row, id) = x
			}
		}
	}
	if failed == 0 {
		compareParams("v_params", grads, b.want())
	}
}

// compareParams compares gradients by tensor and splat. The chain through a needle's conic cancels: the reference
// itself, in float32, is off by up to 5e-3 of the largest element of a splat's tensor, and by 2e-5 in the norm of
// everything.
func compareParams(binding string, got *ref.Params[float32], want *ref.Params[float64]) {
	g := got.Tensors()
	for k, w := range want.Tensors() {
		name := binding + "." + w.Name
		limit := func(i int) float64 {
			largest := 1e-6
			for _, x := range w.Data[i/w.Width*w.Width : (i/w.Width+1)*w.Width] {
				largest = max(largest, math.Abs(x))
			}
			return 1e-2 * largest
		}
		nearBy(name, g[k].Data, w.Data, limit)
		nearNorm(name, g[k].Data, w.Data, 1e-4)
	}
}
