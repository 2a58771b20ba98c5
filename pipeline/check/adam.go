package check

import (
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func adamCases() []Case {
	return slices.Concat(adamCasesOf("project_bwd_adam", newCase), adamCasesOf("project_bwd_adam_mixed", mixedCase),
		mixedAdamCases(), unseenCases("adam_unseen", newCase), unseenCases("adam_unseen_mixed", mixedCase))
}

// unseenCases are those of a step that two kernels do: adam_unseen, and project_bwd_adam what is left.
func unseenCases(kernel string, newCase caseMaker) []Case {
	some := func(t *trial, n, degree, lens int) *backward {
		v := t.camera(123, 83)
		if lens >= 0 {
			v = t.bend(v, lens)
		}
		p := t.splats(n, degree)
		for i := range p.LogitOpacities { // every other workgroup is invisible, and some splats of the others
			if i/128%2 == 1 || i%5 == 0 {
				p.LogitOpacities[i] = -12
			}
		}
		return t.backwardOf(p, v)
	}
	with := func(n, degree, lens int, with adamVariant) func(t *trial) error {
		with.apart = true
		return func(t *trial) error { return checkAdamWith(t, some(t, n, degree, lens), 30, with) }
	}
	full := adamVariant{penalties: ref.Penalties{Opacity: 500, Scale: 300}, noise: 3, shell: checkShell}
	return []Case{
		newCase(kernel, "some workgroups are seen", with(900, 3, -1, adamVariant{})),
		newCase(kernel, "less than a workgroup", with(100, 0, -1, adamVariant{})),
		newCase(kernel, "through a lens", with(500, 1, 1, adamVariant{})),
		newCase(kernel, "regularisers, noise, a far shell", with(700, 1, -1, full)),
		newCase(kernel, "as project_bwd_adam, to the bit", func(t *trial) error {
			return each([]int{0, 1, 2, 3}, func(degree int) error {
				return first(checkUnseenBits(t, some(t, 600, degree, -1), adamVariant{}),
					checkUnseenBits(t, some(t, 600, degree, 1), full))
			})
		}),
		newCase(kernel, "a failed unit changes nothing", with(400, 2, -1, adamVariant{failed: layout.FailedIsects})),
	}
}

// adamCasesOf are the cases of one precision.
func adamCasesOf(kernel string, newCase func(kernel, name string, run func(t *trial) error) Case) []Case {
	return []Case{
		newCase(kernel, "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, chunkSplats - 1, chunkSplats, chunkSplats + 1, 1000},
				func(n int) error {
					return checkAdam(t, t.backward(n, 0, t.camera(123, 83)), 7, 0)
				})
		}),
		newCase(kernel, "cameras, antialiasing, SH degrees", func(t *trial) error {
			return bwdModes(t,
				func(degree int, v *ref.View[float32]) error { return checkAdam(t, t.backward(300, degree, v), 30, 0) })
		}),
		newCase(kernel, "first step and a late one", func(t *trial) error {
			return each([]int{1, 2, 30000},
				func(step int) error { return checkAdam(t, t.backward(300, 1, t.camera(123, 83)), step, 0) })
		}),
		newCase(kernel, "regularisers", func(t *trial) error {
			return each([]ref.Penalties{{Opacity: 700}, {Scale: 900}, {Opacity: 500, Scale: 300}},
				func(w ref.Penalties) error {
					return checkAdamWith(t, t.backward(400, 1, t.camera(123, 83)), 30, adamVariant{penalties: w})
				})
		}),
		newCase(kernel, "noise", func(t *trial) error {
			return checkAdamWith(t, t.backward(400, 1, t.camera(123, 83)), 30, adamVariant{noise: 3})
		}),
		newCase(kernel, "a far shell", func(t *trial) error {
			return checkAdamWith(t, t.backward(400, 1, t.camera(123, 83)), 30,
				adamVariant{penalties: ref.Penalties{Opacity: 500, Scale: 300}, noise: 3, shell: checkShell})
		}),
		newCase(kernel, "absolute gradients", func(t *trial) error {
			return checkAdamWith(t, t.backward(400, 1, t.camera(123, 83)), 30, adamVariant{absgrad: true})
		}),
		newCase(kernel, "a failed unit changes nothing", func(t *trial) error {
			return checkAdam(t, t.backward(400, 1, t.camera(123, 83)), 7, layout.FailedSplats)
		}),
	}
}

// unseenParts is into how many parts the checks deal the workgroups of adam_unseen.
const unseenParts = 3

// What random numbers of the checks are keyed by.
const adamSeed, adamStep = 6<<32 | 5, 77

// checkShell is about the median distance of the checks' splats: one half of them is the far shell.
const checkShell = 1.5

// rates are the learning rates of the checks: large, so that a step shows in float32, and all different.
var rates = func() (r ref.Rates) {
	for i, rate := range r.All() {
		*rate = 0.01 * float64(i+1)
	}
	return r
}()

// trained returns a model with moments and statistics as after some steps. Rows above the view's SH degree have never
// been trained.
func (t *trial) trained(b *backward) *ref.Model[float32] {
	m := ref.NewModel(b.p.Clone())
	for i := range m.N {
		for r := range ref.ParamRows(b.v.SHDegree) {
			// Second moments of at least 0.5 make the step a smooth function of the gradient.
			*m.M.At(r, i), *m.V.At(r, i) = float32(t.NormFloat64()), float32(0.5+t.Float64())
		}
		m.Grad2D[i], m.Count[i] = t.Float32(), float32(t.IntN(50))
	}
	return m
}

// adamVariant is what a strategy adds to a step.
type adamVariant struct {
	penalties ref.Penalties
	noise     float64
	shell     float64 // distance from which on splats are of the far shell
	absgrad   bool
	failed    uint32
	apart     bool // adam_unseen steps workgroups that the view does not see
}

// checkAdam takes one step with gradients of very different sizes, as the chain rule gives them.
func checkAdam(t *trial, b *backward, step int, failed uint32) error {
	return checkAdamWith(t, b, step, adamVariant{failed: failed})
}

func checkAdamWith(t *trial, b *backward, step int, with adamVariant) error {
	start, abs := t.started(b, with), t.absolute(b.p.N)
	m, err := stepAdam(t, b, start, abs, step, with)
	if err != nil {
		return err
	}
	if with.failed != 0 {
		return m.untouched()
	}
	want := wantStep(start, b.want(), step, with, ref.DefaultAdam)
	ref.Statistics(want, ref.ConvertView[float64](b.v), b.proj, b.statistic(abs, with))
	return m.compareAfter(want, b.v.SHDegree)
}

// stepAdam has the kernels take a step from start.
func stepAdam(t *trial, b *backward, start *ref.Model[float32], abs [][2]float32, step int, with adamVariant) (*model,
	error) {
	l := t.list()
	m := l.upload(start, chunkSplats, max(1, blocksOf(b.p.N, chunkSplats)))
	b.p.SH = slices.Clone(start.SH) // as it was uploaded
	params, counters := input(l, "params", []layout.StepParams{adamParams(b.v, step, with, ref.DefaultAdam)}),
		input(l, "counters", b.counters(with.failed))
	keys, grad := input(l, "depth_keys", b.proj.DepthKeys), input(l, "v_projected", gradientsOf(b.grad))
	paints := input(l, "paints", b.paints())
	for i, chunk := range m.chunks {
		for part := 0; with.apart && part < unseenParts; part++ {
			l.r.Dispatch(&shaders.AdamUnseen{
				Params: params, Counters: counters, DepthKeys: keys, Chunk: chunk.Slice, Mixed: m.mixed,
				Spec: shaders.AdamUnseenSpec{Noise: with.noise > 0},
				Push: shaders.AdamUnseenPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats,
					NParams: uint32(m.params), Part: uint32(part), NParts: unseenParts},
			}, vk.Items(m.size, 128*unseenParts))
		}
		l.adamSeen(m, b.v, shaders.ProjectBwdAdam{
			Params: params, Counters: counters, DepthKeys: keys, VProjected: grad, Paints: paints,
			Chunk:      chunk.Slice,
			VAbsMean2d: input(l, "v_abs_mean2d", abs),
			Spec: shaders.ProjectBwdAdamSpec{Absgrad: with.absgrad, Noise: with.noise > 0,
				UnseenApart: with.apart},
			Push: shaders.ProjectBwdAdamPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats,
				NParams: uint32(m.params)},
		})
	}
	return m, l.run()
}

// checkUnseenBits wants a step that two kernels share to be, to the bit, the one that project_bwd_adam takes alone:
// which of them steps a splat hangs on where chunks begin. Moments are of every size, down to zeros with a sign.
func checkUnseenBits(t *trial, b *backward, with adamVariant) error {
	m1 := []float32{1, -0.7, 1e-20, -3e-30, 2e-38, -1.2e-38, 1e-40, -1e-40, 0, float32(math.Copysign(0, -1))}
	m2 := []float32{1, 1e-8, 3e-20, 1e-30, 2e-38, 1e-39, 0}
	start, abs := t.started(b, with), t.absolute(b.p.N)
	for i := range start.N {
		for r := range ref.ParamRows(b.v.SHDegree) {
			*start.M.At(r, i), *start.V.At(r, i) = m1[t.IntN(len(m1))], m2[t.IntN(len(m2))]
		}
	}
	alone, err := stepAdam(t, b, start, abs, 30, with)
	if err != nil {
		return err
	}
	with.apart = true
	shared, err := stepAdam(t, b, start, abs, 30, with)
	if err != nil {
		return err
	}
	for i, c := range alone.chunks {
		for k, x := range c.got {
			if got := shared.chunks[i].got[k]; math.Float32bits(got) != math.Float32bits(x) {
				return fmt.Errorf("binding chunk: row %d of splat %d: got %#x, want %#x as of project_bwd_adam",
					k/chunkSplats, i*chunkSplats+k%chunkSplats, math.Float32bits(got), math.Float32bits(x))
			}
		}
	}
	return nil
}

// started makes the model that a step begins with, and b agree with it.
func (t *trial) started(b *backward, with adamVariant) *ref.Model[float32] {
	start := t.trained(b)
	if with.noise > 0 {
		for i := range start.N { // the gate is open
			start.LogitOpacities[i] -= 5
		}
		b.p.LogitOpacities = slices.Clone(start.LogitOpacities)
		b.proj = ref.Project(ref.ConvertParams[float64](b.p), ref.ConvertView[float64](b.v))
	}
	return start
}

// absolute makes absolute gradients of n projections.
func (t *trial) absolute(n int) [][2]float32 {
	abs := make([][2]float32, max(1, n))
	for i := range abs {
		abs[i] = [2]float32{t.Float32(), 3 * t.Float32()}
	}
	return abs
}

// adamParams are the kernels' parameters of a step on a view.
func adamParams(v *ref.View[float32], step int, with adamVariant, c ref.AdamConfig) layout.StepParams {
	p := paramsOf(v)
	rates.Put(&p)
	p.OpacityReg, p.ScaleReg, p.NoiseScale = float32(with.penalties.Opacity), float32(with.penalties.Scale),
		float32(with.noise)
	p.Shell = float32(with.shell)
	p.Step, p.SeedLo, p.SeedHi = adamStep, adamSeed&0xFFFFFFFF, adamSeed>>32
	p.InvBias1 = float32(1 / (1 - math.Pow(c.Beta1, float64(step))))
	p.InvSqrtBias2 = float32(1 / math.Sqrt(1-math.Pow(c.Beta2, float64(step))))
	return p
}

// wantStep is the reference's step from start with gradients g, without statistics.
func wantStep(start *ref.Model[float32], g *ref.Params[float64], step int, with adamVariant,
	c ref.AdamConfig) *ref.Model[float64] {
	want := model64(start)
	before := slices.Clone(want.Means)
	units := ref.ShellUnits(&want.Params, with.shell)
	ref.Penalise(g, &want.Params, with.penalties, units)
	ref.AdamModel(want, g, rates, c, step)
	ref.WidenSteps(&want.Params, before, units)
	if with.noise > 0 {
		ref.Explore(&want.Params, with.noise, units, adamSeed, adamStep)
	}
	return want
}

// statistic returns the gradients that statistics are made of.
func (b *backward) statistic(abs [][2]float32, with adamVariant) []ref.ProjectedGrad[float64] {
	stat := b.grad64()
	for i := range stat {
		if with.absgrad {
			stat[i][0], stat[i][1] = float64(abs[i][0]), float64(abs[i][1])
		}
	}
	return stat
}

// compareAfter compares the model with the reference's after a step that trained up to an SH degree.
func (d *model) compareAfter(want *ref.Model[float64], degree int) error {
	compare := compareStep
	if d.mixed {
		compare = compareMixedStep
	}
	return first(compare(d.download(want.N, want.Degree), want), d.restUntouched(want.N, ref.ParamRows(degree)))
}

// adam records the step of a chunk.
func (l *list) adam(m *model, pass shaders.ProjectBwdAdam) {
	pass.Mixed = m.mixed
	l.r.Dispatch(&pass, vk.Items(m.size, 128))
}

func model64(m *ref.Model[float32]) *ref.Model[float64] {
	return &ref.Model[float64]{
		Params: *ref.ConvertParams[float64](&m.Params), M: *ref.ConvertParams[float64](&m.M),
		V:      *ref.ConvertParams[float64](&m.V),
		Grad2D: ref.ConvertSlice[float64](m.Grad2D), Count: ref.ConvertSlice[float64](m.Count),
	}
}

// compareStep allows what compareParams allows of the gradients: a hundredth of the largest of a splat's tensor, of
// which a tenth goes to the first moments and, squared, a thousandth to the second.
func compareStep(got *ref.Model[float32], want *ref.Model[float64]) error {
	for k, w := range want.M.Tensors() {
		largest := func(i int) float64 {
			x := 1.0
			for _, m := range w.Data[i/w.Width*w.Width : (i/w.Width+1)*w.Width] {
				x = max(x, math.Abs(m))
			}
			return x
		}
		x, m, v := got.Tensors()[k], got.M.Tensors()[k], got.V.Tensors()[k]
		wantX, wantV := want.Tensors()[k].Data, want.V.Tensors()[k].Data
		err := first(
			closeScaled("chunk.first moments of "+w.Name, m.Data, w.Data,
				func(i int) float64 { return 1e-3 * largest(i) }),
			closeScaled("chunk.second moments of "+w.Name, v.Data, wantV,
				func(i int) float64 { return 2e-3*math.Abs(wantV[i]) + 1e-3*largest(i)*largest(i) }),
			closeScaled("chunk."+w.Name, x.Data, wantX,
				func(i int) float64 { return 2e-6*math.Abs(wantX[i]) + 2e-4*largest(i)/math.Sqrt(wantV[i]+0.5) }),
			normWithin("chunk.first moments of "+w.Name, m.Data, w.Data, 1e-4),
			normWithin("chunk.second moments of "+w.Name, v.Data, wantV, 1e-3),
		)
		if err != nil {
			return err
		}
	}
	return first(closeTo("chunk.grad2d", got.Grad2D, want.Grad2D, 1e-6, 1e-5),
		closeTo("chunk.count", got.Count, want.Count, 0, 0))
}

// restUntouched requires that places that hold no splat are as they were, and the rows of SH coefficients that are not
// trained yet.
func (d *model) restUntouched(n, trained int) error {
	for c, chunk := range d.chunks {
		for row := range len(chunk.got) / d.size {
			live := min(max(n-c*d.size, 0), d.size)
			if !d.trains(row, trained) {
				live = 0
			}
			from, to := row*d.size+live, (row+1)*d.size
			if err := sameBytes("chunk", chunk.got[from:to], chunk.start[from:to]); err != nil {
				return fmt.Errorf("chunk %d, row %d: %w", c, row, err)
			}
		}
	}
	return nil
}
