package check

import (
	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// caseMaker is newCase or mixedCase.
type caseMaker func(kernel, name string, run func(t *trial) error) Case

// besides are gradients beside those of n projections, as those of rasterize_bwd_depth.
func (t *trial) besides(n int) [][3]float32 {
	x := make([][3]float32, max(1, n))
	for i := range x {
		x[i] = [3]float32{t.Float32(), 3 * t.Float32(), float32(20 * t.NormFloat64())}
	}
	return x
}

// parts divides besides into absolute gradients and those by the inverse of the depth.
func parts(besides [][3]float32) (abs [][2]float32, inverse []float64) {
	for _, x := range besides {
		abs, inverse = append(abs, [2]float32(x[:2])), append(inverse, float64(x[2]))
	}
	return abs, inverse
}

func depthStepCases(kernel string, newCase caseMaker) []Case {
	return []Case{
		newCase(kernel, "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, chunkSplats + 1},
				func(n int) error { return checkDepthStep(t, t.backward(n, 0, t.camera(123, 83)), adamVariant{}) })
		}),
		newCase(kernel, "cameras, antialiasing, SH degrees", func(t *trial) error {
			return bwdModes(t, func(degree int, v *ref.View[float32]) error {
				return checkDepthStep(t, t.backward(300, degree, v), adamVariant{})
			})
		}),
		newCase(kernel, "absolute gradients, noise", func(t *trial) error {
			return checkDepthStep(t, t.backward(400, 1, t.camera(123, 83)), adamVariant{absgrad: true, noise: 3})
		}),
		newCase(kernel, "a failed unit changes nothing", func(t *trial) error {
			return checkDepthStep(t, t.backward(400, 1, t.camera(123, 83)), adamVariant{failed: layout.FailedSplats})
		}),
	}
}

// checkDepthStep is checkAdamWith where means have gradients by their depth, too.
func checkDepthStep(t *trial, b *backward, with adamVariant) error {
	const step = 30
	l := t.list()
	start := t.started(b, with)
	beside := t.besides(b.p.N)
	abs, inverse := parts(beside)
	m := l.upload(start, chunkSplats, max(1, blocksOf(b.p.N, chunkSplats)))
	b.p.SH = append([]float32(nil), start.SH...) // as it was uploaded
	pass := shaders.ProjectBwdAdamDepth{
		Params:   input(l, "params", []layout.StepParams{adamParams(b.v, step, with, ref.DefaultAdam)}),
		Counters: input(l, "counters", b.counters(with.failed)), DepthKeys: input(l, "depth_keys", b.proj.DepthKeys),
		VProjected: input(l, "v_projected", gradientsOf(b.grad)), Paints: input(l, "paints", b.paints()),
		VBeside: input(l, "v_beside", beside), Mixed: m.mixed,
		Spec: shaders.ProjectBwdAdamDepthSpec{Absgrad: with.absgrad, Noise: with.noise > 0},
	}
	for i, chunk := range m.chunks {
		now := pass
		now.Chunk = chunk.Slice
		now.Push = shaders.ProjectBwdAdamDepthPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats,
			NParams: uint32(m.params)}
		l.r.Dispatch(&now, vk.Items(m.size, 128))
	}
	if err := l.run(); err != nil {
		return err
	}
	if with.failed != 0 {
		return m.untouched()
	}
	g, v := b.want(), ref.ConvertView[float64](b.v)
	ref.AddInverseDepthGrads(g, ref.ConvertParams[float64](b.p), v, b.proj, inverse)
	want := wantStep(start, g, step, with, ref.DefaultAdam)
	ref.Statistics(want, v, b.proj, b.statistic(abs, with))
	return m.compareAfter(want, b.v.SHDegree)
}

func depthBatchCases(kernel string, newCase caseMaker) []Case {
	return []Case{
		newCase(kernel, "numbers of views", func(t *trial) error {
			return each([]int{1, 2, 3, 7},
				func(views int) error { return checkDepthBatch(t, t.batch(300, 1, views), adamVariant{}) })
		}),
		newCase(kernel, "absolute gradients", func(t *trial) error {
			return checkDepthBatch(t, t.batch(400, 1, 3), adamVariant{absgrad: true})
		}),
	}
}

// checkDepthBatch is checkBatch where means have gradients by their depth, too.
func checkDepthBatch(t *trial, b []*backward, with adamVariant) error {
	l := t.list()
	start, c := t.started(b[0], with), ref.DefaultAdam.Batch(len(b))
	m := l.upload(start, chunkSplats, max(1, blocksOf(start.N, chunkSplats)))
	var besides [][][3]float32
	var abs [][][2]float32
	var params []layout.StepParams
	for _, view := range b {
		*view = *t.seenFrom(start, view)
		besides = append(besides, t.besides(start.N))
		ofAbs, _ := parts(besides[len(besides)-1])
		abs = append(abs, ofAbs)
		p := adamParams(view.v, depthBatchStep, with, c)
		p.BatchBeta1, p.BatchRest1 = float32(c.Beta1), float32(1-c.Beta1)
		p.BatchBeta2, p.BatchRest2, p.BatchEps = float32(c.Beta2), float32(1-c.Beta2), float32(c.Eps)
		params = append(params, p)
	}
	from := pack(b, abs)
	pass := shaders.ProjectBwdAdamViewsDepth{
		Params: input(l, "params", params), Counters: input(l, "counters", b[0].countersOf(with)),
		IndexOf: input(l, "index_of", from.indexOf), VViews: input(l, "v_views", from.grads),
		VBesideViews: input(l, "v_beside_views", packBesides(b, besides, from.gradStride)), Mixed: m.mixed,
		Spec: shaders.ProjectBwdAdamViewsDepthSpec{Absgrad: with.absgrad, NViews: uint32(len(b))},
	}
	for i, chunk := range m.chunks {
		now := pass
		now.Chunk = chunk.Slice
		now.Push = shaders.ProjectBwdAdamViewsDepthPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats,
			NParams: uint32(m.params), IndexStride: uint32(from.indexStride), GradStride: uint32(from.gradStride)}
		l.r.Dispatch(&now, vk.Items(m.size, 128))
	}
	if err := l.run(); err != nil {
		return err
	}
	return m.compareAfter(wantDepthBatch(start, b, besides, with, c), b[0].v.SHDegree)
}

const depthBatchStep = 30

// packBesides packs what comes beside the gradients of splats that the views see.
func packBesides(b []*backward, besides [][][3]float32, stride int) (packed [][3]float32) {
	for w, view := range b {
		_, index := ref.SendVisible(view.proj)
		for i, k := range index {
			if k != layout.Culled {
				packed = append(packed, besides[w][i])
			}
		}
		packed = append(packed, make([][3]float32, (w+1)*stride-len(packed))...)
	}
	return packed
}

// wantDepthBatch is the reference's step.
func wantDepthBatch(start *ref.Model[float32], b []*backward, besides [][][3]float32, with adamVariant,
	c ref.AdamConfig) *ref.Model[float64] {
	p := ref.ConvertParams[float64](b[0].p)
	var views []*ref.View[float64]
	var proj []*ref.Projection[float64]
	var grads [][]ref.ProjectedGrad[float64]
	depth := ref.NewParams[float64](p.N, p.Degree)
	for w, view := range b {
		v := ref.ConvertView[float64](view.v)
		views, proj, grads = append(views, v), append(proj, view.proj), append(grads, view.grad64())
		_, inverse := parts(besides[w])
		ref.AddInverseDepthGrads(depth, p, v, view.proj, inverse)
	}
	g := ref.ProjectBwdViews(p, views, proj, grads)
	for i, x := range depth.Means {
		g.Means[i] += x / float64(len(b))
	}
	want := wantStep(start, g, depthBatchStep, with, c)
	for w, view := range b {
		abs, _ := parts(besides[w])
		ref.Statistics(want, views[w], proj[w], view.statistic(abs, with))
	}
	return want
}

// depthSumCases are those of sums over slots, and of packets.
func depthSumCases() []Case {
	return []Case{
		newCase("reduce_slots_depth", "bands", func(t *trial) error {
			return each([]int{1, 2, 5}, func(bands int) error { return checkReduceDepth(t, bands) })
		}),
		newCase("send_grads_depth", "sizes", func(t *trial) error {
			return each(packetSizes, func(n int) error { return checkSendGradsDepth(t, n) })
		}),
	}
}

// besideOf are what the check invents beside gradients: the first three of them.
func besideOf(v []ref.ProjectedGrad[float32]) [][3]float32 {
	out := make([][3]float32, len(v))
	for i, g := range v {
		out[i] = [3]float32(g[:3])
	}
	return out
}

// checkReduceDepth sums splats that touch few tiles and many.
func checkReduceDepth(t *trial, bands int) error {
	v := t.camera(250, 130)
	p := t.ellipses(120, 250, 130)
	for range 3 {
		t.addEllipse(p, [2]float64{125, 65}, 400, 400, 0.9)
	}
	whole, err := runTiles(t, p, v, 0, 1, len(p.Splats)*v.Grid().Tiles())
	if err != nil {
		return err
	}
	sums := slotSums(whole, len(p.Splats), v.Grid().Cols)
	want := make([]ref.ProjectedGrad[float32], len(p.Splats))
	for i := range want {
		want[i] = slotGrad(uint32(i), 1<<31) // of the step before
	}
	l := t.list()
	out, beside := inout(l, "v_projected", gradientsOf(want)), inout(l, "v_beside", besideOf(want))
	for band := range bands {
		s, err := runTiles(t, p, v, band, bands, len(whole.tiles))
		if err != nil {
			return err
		}
		slots := make([]ref.ProjectedGrad[float32], len(s.tiles))
		for slot, tile := range s.tiles {
			slots[slot] = slotGrad(s.splats[slot], tile)
		}
		l.r.Dispatch(&shaders.ReduceSlotsDepth{
			Params: input(l, "params", []layout.StepParams{paramsOf(v)}), Counters: input(l, "counters", s.counters),
			SplatFromRank: input(l, "splat_from_rank", s.ranks), FirstIsect: input(l, "first_isect", s.first),
			Shapes:       input(l, "shapes", shapesOf(p)),
			VSlots:       vk.Cast[float32](input(l, "v_slots", gradientsOf(slots)).View),
			VProjected:   vk.Cast[float32](out.View),
			VBesideSlots: vk.Cast[float32](input(l, "v_beside_slots", besideOf(slots)).View),
			VBeside:      vk.Cast[float32](beside.View),
			Push:         shaders.ReduceSlotsDepthPush{Band: uint32(band), NBands: uint32(bands)},
		}, vk.Items(len(s.ranks)+256, layout.ReduceRanks))
	}
	if err := l.run(); err != nil {
		return err
	}
	for i := range want {
		if p.DepthKeys[i] != ref.Culled {
			want[i] = sums[i]
		}
	}
	return first(sameBytes("v_projected", out.got, gradientsOf(want)),
		sameBytes("v_beside", beside.got, besideOf(want)))
}

// checkSendGradsDepth sends the gradients of the second of three packets' splats.
func checkSendGradsDepth(t *trial, n int) error {
	l := t.list()
	const before = 13
	all := before + n + 5
	paints := make([][4]float32, all)
	for i := range paints {
		paints[i] = [4]float32{0, 1, 1, 1}
	}
	grads, beside := t.anyPositive(9*all), t.anyPositive(3*all)
	headers := output[layout.PacketHeader](l, "headers", 4)
	out, outBeside := output[float32](l, "out_grads", 9*(n+3)), output[float32](l, "out_beside", 3*(n+3))
	l.r.Dispatch(&shaders.SendGradsDepth{
		Params:     input(l, "params", []layout.StepParams{{Unit: unitOfPackets}}),
		Counters:   input(l, "counters", junkCounters(map[int]uint32{layout.Failed: 0})),
		FirstOf:    input(l, "first_of", []uint32{0, before, uint32(before + n), uint32(all)}),
		Paints:     input(l, "paints", floatsOf(paints)),
		VProjected: input(l, "v_projected", grads), VBeside: input(l, "v_beside", beside), Headers: headers.Slice,
		OutGrads: out.Slice, OutBeside: outBeside.Slice, Push: shaders.SendGradsDepthPush{Index: 1, HeaderId: 3},
	}, vk.Items((n+700)*9, layout.CopyBlock))
	if err := l.run(); err != nil {
		return err
	}
	gotGrads, errG := out.written(9 * n)
	gotBeside, errB := outBeside.written(3 * n)
	return first(errG, errB, sameBytes("out_grads", gotGrads, grads[9*before:9*(before+n)]),
		sameBytes("out_beside", gotBeside, beside[3*before:3*(before+n)]))
}
