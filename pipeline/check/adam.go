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

// fullVariant is a step with all that a strategy adds.
var fullVariant = adamVariant{penalties: ref.Penalties{Opacity: 500, Scale: 300}, noise: 3, shell: checkShell}

// adamCases are those of the kernels that step, each in both precisions.
func adamCases() []Case {
	var cases []Case
	for kernel, rows := range map[string]table{
		"project_bwd_adam":             adamRows(adamVariant{}, 255, 256, 257, chunkSplats-1, chunkSplats, 1000),
		"project_bwd_adam_views":       batchRows(),
		"project_bwd_adam_depth":       depthStepRows(),
		"project_bwd_adam_views_depth": depthBatchRows(),
		"project_bwd_adam_lens":        lensStepRows(),
		"adam_unseen":                  unseenRows(),
	} {
		cases = slices.Concat(cases, casesOf(kernel, rows), casesOf(kernel+"_mixed", rows, inMixed))
	}
	return cases
}

func (t source) single(n, degree int) []*backward {
	return []*backward{t.backward(n, degree, t.camera(123, 83))}
}

func (t source) batch(n, degree, views int) (b []*backward) {
	p := t.splats(n, degree)
	for w := range views {
		v := t.camera(123+10*w, 83)
		v.SHDegree = degree
		b = append(b, t.backwardOf(p, v))
	}
	return b
}

// stepRow is a row of one step on splats of SH degree 1.
func stepRow(name string, views int, with adamVariant) table {
	return table{{name, func(t *trial) {
		b := t.single(400, 1)
		if with.batch {
			b = t.batch(400, 1, views)
		}
		checkStep(t, b, 30, with)
	}}}
}

func adamRows(with adamVariant, sizes ...int) table {
	return slices.Concat(table{
		{"sizes", over(append([]int{0, 1, chunkSplats + 1}, sizes...),
			func(t *trial, n int) { checkStep(t, t.single(n, 0), 7, with) })},
		{"cameras, antialiasing, SH degrees", func(t *trial) {
			bwdModes(t, func(degree int, v *ref.View[float32]) {
				checkStep(t, []*backward{t.backward(300, degree, v)}, 30, with)
			})
		}},
		{"first step and a late one",
			over([]int{1, 2, 30000}, func(t *trial, step int) { checkStep(t, t.single(300, 1), step, with) })},
		{"regularisers", over([]ref.Penalties{{Opacity: 700}, {Scale: 900}, {Opacity: 500, Scale: 300}},
			func(t *trial, w ref.Penalties) { checkStep(t, t.single(400, 1), 30, adamVariant{penalties: w}) })},
	}, stepRow("noise", 1, adamVariant{noise: 3}), stepRow("a far shell", 1, fullVariant),
		stepRow("absolute gradients", 1, adamVariant{absgrad: true}),
		stepRow("a failed unit changes nothing", 1, adamVariant{failed: layout.FailedSplats}))
}

func batchRows() table {
	with := adamVariant{batch: true}
	return slices.Concat(table{
		{"sizes", over([]int{0, 1, 127, 128, 129, chunkSplats - 1, chunkSplats, chunkSplats + 1, 3000},
			func(t *trial, n int) { checkStep(t, t.batch(n, 0, 2), 7, with) })},
		{"numbers of views", over([]int{1, 2, 3, 4, 7, 16},
			func(t *trial, views int) { checkStep(t, t.batch(300, 3, views), 30, with) })},
		{"cameras, antialiasing, SH degrees", func(t *trial) {
			bwdModes(t, func(degree int, v *ref.View[float32]) {
				p, other := t.splats(300, degree), t.camera(70, 110)
				other.Fisheye, other.Antialiased, other.SHDegree = !v.Fisheye, v.Antialiased, v.SHDegree
				checkStep(t, []*backward{t.backwardOf(p, v), t.backwardOf(p, other)}, 30, with)
			})
		}},
		{"views that see nothing", over([]int{1, 2, 3}, func(t *trial, blind int) { // of three
			b := t.batch(400, 2, 3)
			for _, view := range b[:blind] {
				view.v.T[2] = -1000
			}
			checkStep(t, b, 30, with)
		})},
		{"first step and a late one",
			over([]int{1, 2, 30000}, func(t *trial, step int) { checkStep(t, t.batch(300, 1, 2), step, with) })},
		{"regularisers", over([]ref.Penalties{{Opacity: 700}, {Scale: 900, Splats: 1000},
			{Opacity: 500, Scale: 300, Splats: 401}}, func(t *trial, w ref.Penalties) {
			checkStep(t, t.batch(400, 1, 2), 30, adamVariant{batch: true, penalties: w})
		})},
	}, stepRow("noise", 2, adamVariant{batch: true, noise: 3}),
		stepRow("a far shell", 2, adamVariant{batch: true, penalties: ref.Penalties{Scale: 300}, noise: 3,
			shell: checkShell}),
		stepRow("absolute gradients", 3, adamVariant{batch: true, absgrad: true}),
		stepRow("a failed unit changes nothing", 2, adamVariant{batch: true, failed: layout.FailedPeer}))
}

func depthStepRows() table {
	with := adamVariant{depth: true}
	rows := adamRows(with, 255)[:2] // sizes, cameras
	return slices.Concat(rows, stepRow("absolute gradients, noise", 1, adamVariant{depth: true, absgrad: true,
		noise: 3}), stepRow("a failed unit changes nothing", 1, adamVariant{depth: true, failed: layout.FailedSplats}))
}

func depthBatchRows() table {
	with := adamVariant{batch: true, depth: true}
	return append(stepRow("absolute gradients", 3, adamVariant{batch: true, depth: true, absgrad: true}), table{
		{"numbers of views",
			over([]int{1, 2, 3, 7}, func(t *trial, views int) { checkStep(t, t.batch(300, 1, views), 30, with) })},
	}...)
}

func lensStepRows() table {
	with := func(n, degree, lens int, with adamVariant) func(t *trial) {
		return func(t *trial) {
			checkStep(t, []*backward{t.backward(n, degree, t.bend(t.camera(123, 83), lens))}, 30, with)
		}
	}
	plain := func(t *trial, p *ref.Params[float32], v *ref.View[float32]) {
		checkStep(t, []*backward{t.backwardOf(p, v)}, 30, adamVariant{})
	}
	return table{
		{"sizes", over([]int{0, 1, 255, chunkSplats + 1}, func(t *trial, n int) { with(n, 0, 0, adamVariant{})(t) })},
		{"lenses", func(t *trial) { eachLens(t, func(v *ref.View[float32]) { plain(t, t.splats(300, 3), v) }) }},
		{"rolling shutter", func(t *trial) {
			eachLens(t, func(v *ref.View[float32]) { plain(t, t.splats(300, 3), t.move(v)) })
		}},
		{"at a fold", func(t *trial) { eachFold(t, plain) }},
		{"absolute gradients, noise", with(400, 1, 1, adamVariant{absgrad: true, noise: 3})},
		{"a failed unit changes nothing", with(400, 1, 0, adamVariant{failed: layout.FailedSplats})},
	}
}

// unseenRows are those of a step that two kernels do: adam_unseen, and project_bwd_adam what is left.
func unseenRows() table {
	some := func(t *trial, n, degree, lens int) []*backward {
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
		return []*backward{t.backwardOf(p, v)}
	}
	with := func(n, degree, lens int, with adamVariant) func(t *trial) {
		with.apart = true
		return func(t *trial) { checkStep(t, some(t, n, degree, lens), 30, with) }
	}
	return table{
		{"some workgroups are seen", with(900, 3, -1, adamVariant{})},
		{"less than a workgroup", with(100, 0, -1, adamVariant{})},
		{"through a lens", with(500, 1, 1, adamVariant{})},
		{"regularisers, noise, a far shell", with(700, 1, -1, fullVariant)},
		{"as project_bwd_adam, to the bit", over([]int{0, 1, 2, 3}, func(t *trial, degree int) {
			checkUnseenBits(t, some(t, 600, degree, -1), adamVariant{})
			checkUnseenBits(t, some(t, 600, degree, 1), fullVariant)
		})},
		{"a failed unit changes nothing", with(400, 2, -1, adamVariant{failed: layout.FailedIsects})},
	}
}

// checkUnseenBits wants a step that two kernels share to be, to the bit, the one that project_bwd_adam takes alone:
// which of them steps a splat depends on where chunks begin. Moments are of every size, down to zeros with a sign.
func checkUnseenBits(t *trial, b []*backward, with adamVariant) {
	m1 := []float32{1, -0.7, 1e-20, -3e-30, 2e-38, -1.2e-38, 1e-40, -1e-40, 0, float32(math.Copysign(0, -1))}
	m2 := []float32{1, 1e-8, 3e-20, 1e-30, 2e-38, 1e-39, 0}
	s := t.stepOf(b, 30, with)
	for i := range s.start.N {
		for r := range ref.ParamRows(b[0].v.SHDegree) {
			*s.start.M.At(r, i), *s.start.V.At(r, i) = m1[t.IntN(len(m1))], m2[t.IntN(len(m2))]
		}
	}
	alone := s.run()
	s.with.apart = true
	shared := s.run()
	for i, c := range alone.chunks {
		same(fmt.Sprintf("chunk %d, by two kernels", i), wordsOf32(got(t, shared.chunks[i])), wordsOf32(got(t, c)))
	}
}

func wordsOf32(x []float32) []uint32 {
	w := make([]uint32, len(x))
	for i := range x {
		w[i] = math.Float32bits(x[i])
	}
	return w
}

// unseenParts is into how many parts the checks deal the workgroups of adam_unseen.
const unseenParts = 3

// What random numbers of the checks are keyed by. One of splat 11 in this step is the largest below 1, where logarithms
// are hard.
const adamSeed, adamStep = 6<<32 | 5, 170281

// sampledWithin is how far a sample of splat i's Gaussian may be from the reference's, in units of its largest scale to
// this power: three normal samples of up to 6.8, of sines and cosines that Vulkan wants right to 2^-11, and of a
// logarithm right to 2^-21.
func sampledWithin[T ref.Real](p *ref.Params[T], i int, power float64) float64 {
	return 1.0 / 128 * math.Exp(power*float64(slices.Max(p.LogScales[3*i:3*i+3])))
}

// checkShell is about the median distance of the checks' splats: one half of them is the far shell.
const checkShell = 1.5

// rates are the learning rates of the checks: large, so that a step shows in float32, and all different.
var rates = func() (r ref.Rates) {
	for i, rate := range r.All() {
		*rate = 0.01 * float64(i+1)
	}
	return r
}()

// adamVariant is what a strategy adds to a step, and which kernels take it.
type adamVariant struct {
	penalties ref.Penalties
	noise     float64
	shell     float64 // distance from which on splats are of the far shell
	absgrad   bool
	failed    uint32
	apart     bool // adam_unseen steps workgroups that the view does not see
	depth     bool // means have gradients by their depth, too
	batch     bool // the kernels of several devices
}

// Cases of chunks in mixed precision. Models are made of numbers that such a chunk holds: upload rounds them where they
// are.

// mixedCase is newCase in mixed precision.
func mixedCase(kernel, name string, check func(t *trial)) Case {
	return casesOf(kernel, table{{name, check}}, inMixed)[0]
}

func inMixed(t *trial) { t.mixed = true }

// checkRounding says which random numbers round in the checks.
var checkRounding = ref.Rounding{Seed: adamSeed, Step: adamStep}

// roundedWithin requires got to be what rounding by the random bits makes of a number within limit of want.
func roundedWithin(binding string, splat, r int, got float32, want, limit float64, random uint16,
	round func(float32, uint16) uint16, value func(uint16) float32) {
	low, high := value(round(float32(want-limit), random)), value(round(float32(want+limit), random))
	if !(got >= low && got <= high) && !(isNaN(got) && math.IsNaN(want)) {
		failf("binding %s: %s of splat %d: got %g, want %g to %g, rounded from %g by %#x",
			binding, rowName(r), splat, got, low, high, want, random)
	}
}

// limits are how far each number of a step may be from the reference's, before rounding: of parameter r of splat i.
type limits struct {
	first, second, value func(r, i int) float64
}

// compareMixed judges a step by what the reference computes before anything is rounded.
func compareMixed(got *ref.Model[float32], want *ref.Model[float64], by limits) {
	for i := range got.N {
		for r := range ref.ParamRows(got.Degree) {
			a, b, bits := checkRounding.Bits(i, r)
			roundedWithin("chunk.first moments", i, r, *got.M.At(r, i), *want.M.At(r, i), by.first(r, i), a,
				ref.RoundBFloat, ref.BFloatValue)
			roundedWithin("chunk.second moments", i, r, *got.V.At(r, i), *want.V.At(r, i), by.second(r, i), b,
				ref.RoundBFloat, ref.BFloatValue)
			x, y := *got.Params.At(r, i), *want.Params.At(r, i)
			if r >= layout.RowSh {
				roundedWithin("chunk.sh", i, r, x, y, by.value(r, i), bits, layout.RoundHalf, layout.HalfValue)
			} else if !(math.Abs(float64(x)-y) <= by.value(r, i)) {
				failf("binding chunk: %s of splat %d: got %g, want %g", rowName(r), i, x, y)
			}
		}
	}
	compareStatistics(got, want)
}

// compareMixedStep allows what compareStep does.
func compareMixedStep(got *ref.Model[float32], want *ref.Model[float64], with adamVariant) {
	largest := func(r, i int) float64 {
		first, rows := 0, 0
		for _, t := range want.M.Tensors() {
			if first, rows = rows, rows+t.Width; r < rows {
				break
			}
		}
		x := 1.0
		for k := first; k < rows; k++ {
			x = max(x, math.Abs(*want.M.At(k, i)))
		}
		return x
	}
	compareMixed(got, want, limits{
		first:  func(r, i int) float64 { return 1e-3 * largest(r, i) },
		second: func(r, i int) float64 { return 2e-3*math.Abs(*want.V.At(r, i)) + 1e-3*largest(r, i)*largest(r, i) },
		value: func(r, i int) float64 {
			limit := 2e-6*math.Abs(*want.Params.At(r, i)) + 2e-4*largest(r, i)/math.Sqrt(*want.V.At(r, i)+0.5)
			if r < layout.RowQuats {
				limit += with.noise * sampledWithin(&want.Params, i, 2)
			}
			return limit
		},
	})
}

func mixedAdamCases() []Case {
	return casesOf("project_bwd_adam_mixed", table{{"moments of every size, to the bit", checkMixedMoments},
		{"coefficients of every size", checkMixedCoefficients}, {"every half comes back", checkMixedHalves},
		{"not finite stays so", checkMixedNotFinite}, {"finite stays finite", checkMixedFinite}}, inMixed)
}

// unseen takes a step of which the view sees no splat: gradients are those of the terms of the loss that every splat
// has, whose weights are in p. Where these are 0 the new moments are products.
func unseen(t *trial, m *ref.Model[float32], p layout.StepParams) *ref.Model[float32] {
	d := t.upload(m, chunkSplats, 1)
	p.Step, p.SeedLo, p.SeedHi, p.View.ShDegree = adamStep, adamSeed&0xFFFFFFFF, adamSeed>>32, uint32(m.Degree)
	pass := shaders.ProjectBwdAdam{Params: in(t, p), Counters: in(t, (&backward{p: &m.Params}).counters(0)...),
		Mixed: d.Mixed, DepthKeys: in(t, slices.Repeat([]uint32{layout.Culled}, m.N)...), VProjected: in(t,
			make([]layout.ProjectedGrad, m.N)...), Paints: in(t, make([][4]float32, m.N)...), VAbsMean2d: in(t,
			make([][2]float32, m.N)...)}
	d.dispatch(128, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		p := pass
		p.Chunk = chunk
		p.Push = shaders.ProjectBwdAdamPush{FirstId: first, ChunkSplats: chunkSplats, NParams: uint32(d.NParams)}
		return &p
	})
	t.run()
	d.restUntouched(m.N, d.NParams)
	return d.download(m.N, m.Degree)
}

// checkMixedMoments lets moments decay, which is one product that every device rounds alike. What is below float32's
// normal numbers may become 0.
func checkMixedMoments(t *trial) {
	const least = 1.1754944e-38
	first := []float32{0, 1, -1, 0.7, -1e-4, 1e-20, -3e-30, 2e-38, -1.2e-38, 3.3e38, -3.3e38, 1e-40}
	second := []float32{0, 1, 1e-8, 1e-20, 3e-20, 1e-30, 2e-38, 1e10, 3.3e38, 1e-39}
	m := ref.NewModel(t.splats(700, 2))
	for i := range m.N {
		for r := range ref.ParamRows(2) {
			*m.M.At(r, i), *m.V.At(r, i) = first[t.IntN(len(first))], second[t.IntN(len(second))]
		}
	}
	got := unseen(t, m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1}) // rates of 0: parameters stay
	for i := range m.N {
		for r := range ref.ParamRows(2) {
			a, b, _ := checkRounding.Bits(i, r)
			for _, x := range []struct {
				name      string
				got, want float32
				random    uint16
			}{
				{"first moment", *got.M.At(r, i), float32(layout.AdamBeta1) * *m.M.At(r, i), a},
				{"second moment", *got.V.At(r, i), float32(layout.AdamBeta2) * *m.V.At(r, i), b},
			} {
				want := ref.BFloatValue(ref.RoundBFloat(x.want, x.random))
				if x.got != want && !(x.got == 0 && math.Abs(float64(x.want)) < least) {
					failf("binding chunk: %s of %s of splat %d: got %g, want %g, which is %g "+
						"rounded by %#x", x.name, rowName(r), i, x.got, want, x.want, x.random)
				}
			}
			if x, y := *got.Params.At(r, i), *m.Params.At(r, i); x != y {
				failf("binding chunk: %s of splat %d: got %g, want %g as before", rowName(r), i, x, y)
			}
		}
	}
}

// checkMixedCoefficients moves coefficients by steps far below and above a unit in their last place: up to the largest
// half and beyond, down to the smallest.
func checkMixedCoefficients(t *trial) {
	values := []float32{0, 1, -0.3, 65504, -65504, 60000, 6.1e-5, -6.2e-5, 3e-5, 6e-8, -1.2e-7, 1e-3}
	m := ref.NewModel(t.splats(700, 3))
	for i := range m.N {
		for r := range ref.ParamRows(3) {
			size := math.Pow(10, -9+12*t.Float64())
			*m.M.At(r, i), *m.V.At(r, i) = float32(size*t.NormFloat64()), 1
			if r >= layout.RowSh {
				*m.Params.At(r, i) = values[t.IntN(len(values))]
			}
		}
	}
	got := unseen(t, m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1, LrSh0: 1, LrShn: 0.5})
	want := model64(m)
	// so late that there is no bias
	ref.AdamModel(want, ref.NewParams[float64](m.N, 3), ref.Rates{SH0: 1, SHN: 0.5}, ref.DefaultAdam, math.MaxInt32)
	compareMixed(got, want, limits{
		first:  func(r, i int) float64 { return 2e-7 * math.Abs(*want.M.At(r, i)) },
		second: func(r, i int) float64 { return 2e-7 },
		// A quotient and a root are right to some units in the last place, the difference to half of one.
		value: func(r, i int) float64 {
			return 1e-6*math.Abs(*want.M.At(r, i)) + 1e-7*math.Abs(*want.Params.At(r, i))
		},
	})
}

// checkMixedHalves takes a step of 0 on coefficients that are all halves there are: each is read and rounded to itself.
func checkMixedHalves(t *trial) {
	m := ref.NewModel(t.splats(1<<16/48+1, 3))
	for i := range m.SH {
		m.SH[i] = layout.HalfValue(uint16(i))
	}
	got := unseen(t, m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1, LrSh0: 1, LrShn: 1})
	for i, x := range m.SH {
		// NaN by its place, not by its bits
		if y := got.SH[i]; math.Float32bits(x) != math.Float32bits(y) && !(isNaN(x) && isNaN(y)) {
			failf("binding chunk: half %#x, %g, becomes %g", uint16(i), x, y)
		}
	}
}

// checkMixedNotFinite lets moments decay some of which are infinite or no number: they stay, and parameters become NaN
// where the step is: 0 times such a first moment, or by a second moment that is no number.
func checkMixedNotFinite(t *trial) {
	inf := float32(math.Inf(1))
	first, second := []float32{0, 1, -1e-4, inf, -inf, nan}, []float32{0, 1, 1e-8, inf, nan}
	m := ref.NewModel(t.splats(700, 2))
	for i := range m.N {
		for r := range ref.ParamRows(2) {
			*m.M.At(r, i), *m.V.At(r, i) = first[t.IntN(len(first))], second[t.IntN(len(second))]
		}
	}
	got := unseen(t, m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1}) // rates of 0
	isFinite := func(x float32) bool { return x-x == 0 }
	for i := range m.N {
		for r := range ref.ParamRows(2) {
			a, b, x := *m.M.At(r, i), *m.V.At(r, i), *m.Params.At(r, i)
			for _, moment := range [][2]float32{{a, *got.M.At(r, i)}, {b, *got.V.At(r, i)}} {
				if isFinite(moment[0]) != isFinite(moment[1]) {
					failf("binding chunk: a moment of %s of splat %d: %g becomes %g", rowName(r), i,
						moment[0], moment[1])
				}
			}
			if y := *got.Params.At(r, i); isNaN(y) != (!isFinite(a) || isNaN(b)) || !isNaN(y) && y != x {
				failf("binding chunk: %s of splat %d, moments %g and %g: %g becomes %g", rowName(r), i, a, b, x, y)
			}
		}
	}
}

// checkMixedFinite takes first moments of log scales above the largest bfloat16 by a gradient of nearly the largest
// float, that of their penalty, which is proportional to the scale: rounded up, some would be infinite.
func checkMixedFinite(t *trial) {
	const n, logScale = 200, 10
	largest := float64(ref.BFloatValue(0x7F7F))
	m := ref.NewModel(t.splats(n, 0))
	for i := range m.LogScales {
		m.LogScales[i], m.M.LogScales[i] = logScale, float32(largest)
	}
	got := unseen(t, m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1,
		ScaleReg: float32(3.4e38 / math.Exp(logScale) * 3 * n)})
	for i, x := range got.M.LogScales {
		if float64(x) != largest {
			failf("binding chunk: first moment of log scale %d of splat %d: %g, want %g", i%3, i/3, x, largest)
		}
	}
}
