package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
)

// Cases of chunks in mixed precision. Models are made of numbers that such a chunk holds: upload rounds them where they
// are.

// mixedCase is newCase in mixed precision.
func mixedCase(kernel, name string, run func(t *trial) error) Case {
	return newCase(kernel, name, func(t *trial) error {
		t.mixed = true
		return run(t)
	})
}

// chunkRows says what is where in the chunks of a model.
type chunkRows struct {
	mixed  bool
	params int // parameters P
	stored int // rows that hold them
	stats  int // first row of statistics
}

func rowsOf(degree int, mixed bool) chunkRows {
	p := ref.ParamRows(degree)
	if !mixed {
		return chunkRows{params: p, stored: p, stats: 3 * p}
	}
	moments, stats := ref.MixedRows(degree)
	return chunkRows{mixed: true, params: p, stored: moments, stats: stats}
}

// momentRow returns the row of the first (0) or second (1) moment of parameter r.
func (c chunkRows) momentRow(r, which int) int {
	if c.mixed {
		return c.stored + r
	}
	return (1+which)*c.params + r
}

// trains reports whether a step trains anything in a row, if the first parameters are those that are trained.
func (c chunkRows) trains(row, trained int) bool {
	switch {
	case row >= c.stats:
		return true
	case !c.mixed:
		return row%c.params < trained
	case row >= c.stored:
		return row-c.stored < trained
	}
	return row < layout.RowSh || layout.RowSh+2*(row-layout.RowSh) < trained
}

// representable rounds a model to what a chunk in mixed precision holds.
func representable(m *ref.Model[float32]) {
	for i, x := range m.SH {
		m.SH[i] = layout.HalfValue(layout.NearestHalf(x))
	}
	for _, p := range []*ref.Params[float32]{&m.M, &m.V} {
		for _, t := range p.Tensors() {
			for i, x := range t.Data {
				t.Data[i] = ref.BFloatValue(ref.RoundBFloat(x, 1<<15))
			}
		}
	}
}

// word returns row r of splat i of m, in mixed precision.
func (c chunkRows) word(m *ref.Model[float32], r, i int) uint32 {
	switch {
	case r < layout.RowSh:
		return math.Float32bits(*m.Params.At(r, i))
	case r < c.stored:
		at := layout.RowSh + 2*(r-layout.RowSh)
		w := uint32(layout.NearestHalf(*m.Params.At(at, i)))
		if at+1 < c.params {
			w |= uint32(layout.NearestHalf(*m.Params.At(at+1, i))) << 16
		}
		return w
	case r < c.stats:
		r -= c.stored
		return uint32(ref.RoundBFloat(*m.M.At(r, i), 0)) | uint32(ref.RoundBFloat(*m.V.At(r, i), 0))<<16
	}
	return math.Float32bits(*modelAt(m, 3*c.params+r-c.stats, i))
}

// setWord is the way back.
func (c chunkRows) setWord(m *ref.Model[float32], r, i int, w uint32) {
	switch {
	case r < layout.RowSh:
		*m.Params.At(r, i) = math.Float32frombits(w)
	case r < c.stored:
		at := layout.RowSh + 2*(r-layout.RowSh)
		*m.Params.At(at, i) = layout.HalfValue(uint16(w))
		if at+1 < c.params {
			*m.Params.At(at+1, i) = layout.HalfValue(uint16(w >> 16))
		}
	case r < c.stats:
		r -= c.stored
		*m.M.At(r, i), *m.V.At(r, i) = ref.BFloatValue(uint16(w)), ref.BFloatValue(uint16(w>>16))
	default:
		*modelAt(m, 3*c.params+r-c.stats, i) = math.Float32frombits(w)
	}
}

// rowName names parameter r of a splat: "quats[2]".
func rowName(r int) string {
	row := r
	for _, x := range ref.NewParams[float32](0, 3).Tensors() {
		if row < x.Width {
			return fmt.Sprintf("%s[%d]", x.Name, row)
		}
		row -= x.Width
	}
	return fmt.Sprintf("row %d", r)
}

// roundedWithin requires got to be what rounding by the random bits makes of a number within limit of want.
func roundedWithin(binding string, splat, r int, got float32, want, limit float64, random uint16,
	round func(float32, uint16) uint16, value func(uint16) float32) error {
	low, high := value(round(float32(want-limit), random)), value(round(float32(want+limit), random))
	if !(got >= low && got <= high) && !(isNaN(got) && math.IsNaN(want)) {
		return fmt.Errorf("binding %s: %s of splat %d: got %g, want %g to %g, rounded from %g by %#x",
			binding, rowName(r), splat, got, low, high, want, random)
	}
	return nil
}

// limits are how far each number of a step may be from the reference's, before rounding: of parameter r of splat i.
type limits struct {
	first, second, value func(r, i int) float64
}

// compareMixed judges a step by what the reference computes before anything is rounded.
func compareMixed(got *ref.Model[float32], want *ref.Model[float64], c ref.Rounding, by limits) error {
	for i := range got.N {
		for r := range ref.ParamRows(got.Degree) {
			a, b, bits := c.Bits(i, r)
			err := first(
				roundedWithin("chunk.first moments", i, r, *got.M.At(r, i), *want.M.At(r, i), by.first(r, i), a,
					ref.RoundBFloat, ref.BFloatValue),
				roundedWithin("chunk.second moments", i, r, *got.V.At(r, i), *want.V.At(r, i), by.second(r, i), b,
					ref.RoundBFloat, ref.BFloatValue),
			)
			x, y := *got.Params.At(r, i), *want.Params.At(r, i)
			if r >= layout.RowSh {
				err = first(err,
					roundedWithin("chunk.sh", i, r, x, y, by.value(r, i), bits, layout.RoundHalf, layout.HalfValue))
			} else if !(math.Abs(float64(x)-y) <= by.value(r, i)) {
				err = first(err, fmt.Errorf("binding chunk: %s of splat %d: got %g, want %g", rowName(r), i, x, y))
			}
			if err != nil {
				return err
			}
		}
	}
	return first(closeTo("chunk.grad2d", got.Grad2D, want.Grad2D, 1e-6, 1e-5),
		closeTo("chunk.count", got.Count, want.Count, 0, 0))
}

// compareMixedStep allows what compareStep does.
func compareMixedStep(got *ref.Model[float32], want *ref.Model[float64]) error {
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
	return compareMixed(got, want, ref.Rounding{Seed: adamSeed, Step: adamStep}, limits{
		first: func(r, i int) float64 { return 1e-3 * largest(r, i) },
		second: func(r, i int) float64 {
			return 2e-3*math.Abs(*want.V.At(r, i)) + 1e-3*largest(r, i)*largest(r, i)
		},
		value: func(r, i int) float64 {
			return 2e-6*math.Abs(*want.Params.At(r, i)) + 2e-4*largest(r, i)/math.Sqrt(*want.V.At(r, i)+0.5)
		},
	})
}

func mixedAdamCases() []Case {
	return []Case{
		mixedCase("project_bwd_adam_mixed", "moments of every size, to the bit", checkMixedMoments),
		mixedCase("project_bwd_adam_mixed", "coefficients of every size", checkMixedCoefficients),
		mixedCase("project_bwd_adam_mixed", "every half comes back", checkMixedHalves),
		mixedCase("project_bwd_adam_mixed", "not finite stays so", checkMixedNotFinite),
		mixedCase("project_bwd_adam_mixed", "finite stays finite", checkMixedFinite),
	}
}

// unseen takes a step of which the view sees no splat: gradients are those of the terms of the loss that every splat
// has, whose weights are in p. Where these are 0 the new moments are products.
func (t *trial) unseen(m *ref.Model[float32], p layout.StepParams) (*ref.Model[float32], error) {
	l := t.list()
	d := l.upload(m, chunkSplats, blocksOf(m.N, chunkSplats))
	b := &backward{p: &m.Params}
	keys := make([]uint32, m.N)
	for i := range keys {
		keys[i] = layout.Culled
	}
	p.Step, p.SeedLo, p.SeedHi, p.View.ShDegree = adamStep, adamSeed&0xFFFFFFFF, adamSeed>>32, uint32(m.Degree)
	params, counters := input(l, "params", []layout.StepParams{p}), input(l, "counters", b.counters(0))
	grad, abs := input(l, "v_projected", make([]layout.ProjectedGrad, m.N)),
		input(l, "v_abs_mean2d", make([][2]float32, m.N))
	paints := input(l, "paints", make([][4]float32, m.N))
	for i, chunk := range d.chunks {
		l.adam(d, shaders.ProjectBwdAdam{
			Params: params, Counters: counters, DepthKeys: input(l, "depth_keys", keys), VProjected: grad,
			Paints: paints, Chunk: chunk.Slice, VAbsMean2d: abs,
			Push: shaders.ProjectBwdAdamPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats,
				NParams: uint32(d.params)},
		})
	}
	if err := l.run(); err != nil {
		return nil, err
	}
	return d.download(m.N, m.Degree), d.restUntouched(m.N, d.params)
}

// checkMixedMoments lets moments decay, which is one product that every device rounds alike. What is below float32's
// normal numbers may become 0.
func checkMixedMoments(t *trial) error {
	const least = 1.1754944e-38
	first := []float32{0, 1, -1, 0.7, -1e-4, 1e-20, -3e-30, 2e-38, -1.2e-38, 3.3e38, -3.3e38, 1e-40}
	second := []float32{0, 1, 1e-8, 1e-20, 3e-20, 1e-30, 2e-38, 1e10, 3.3e38, 1e-39}
	m := ref.NewModel(t.splats(700, 2))
	for i := range m.N {
		for r := range ref.ParamRows(2) {
			*m.M.At(r, i), *m.V.At(r, i) = first[t.IntN(len(first))], second[t.IntN(len(second))]
		}
	}
	got, err := t.unseen(m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1}) // rates of 0: parameters stay
	if err != nil {
		return err
	}
	for i := range m.N {
		for r := range ref.ParamRows(2) {
			a, b, _ := ref.Rounding{Seed: adamSeed, Step: adamStep}.Bits(i, r)
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
					return fmt.Errorf("binding chunk: %s of %s of splat %d: got %g, want %g, which is %g "+
						"rounded by %#x", x.name, rowName(r), i, x.got, want, x.want, x.random)
				}
			}
			if x, y := *got.Params.At(r, i), *m.Params.At(r, i); x != y {
				return fmt.Errorf("binding chunk: %s of splat %d: got %g, want %g as before", rowName(r), i, x, y)
			}
		}
	}
	return nil
}

// checkMixedCoefficients moves coefficients by steps far below and above a unit in their last place: up to the largest
// half and beyond, down to the smallest.
func checkMixedCoefficients(t *trial) error {
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
	got, err := t.unseen(m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1, LrSh0: 1, LrShn: 0.5})
	if err != nil {
		return err
	}
	want := model64(m)
	// so late that there is no bias
	ref.AdamModel(want, ref.NewParams[float64](m.N, 3), ref.Rates{SH0: 1, SHN: 0.5}, ref.DefaultAdam, math.MaxInt32)
	return compareMixed(got, want, ref.Rounding{Seed: adamSeed, Step: adamStep}, limits{
		first:  func(r, i int) float64 { return 2e-7 * math.Abs(*want.M.At(r, i)) },
		second: func(r, i int) float64 { return 2e-7 },
		// A quotient and a root are right to some units in the last place, the difference to half of one.
		value: func(r, i int) float64 {
			return 1e-6*math.Abs(*want.M.At(r, i)) + 1e-7*math.Abs(*want.Params.At(r, i))
		},
	})
}

// checkMixedHalves takes a step of 0 on coefficients that are all halves there are: each is read and rounded to itself.
func checkMixedHalves(t *trial) error {
	m := ref.NewModel(t.splats(1<<16/48+1, 3))
	for i := range m.SH {
		m.SH[i] = layout.HalfValue(uint16(i))
	}
	got, err := t.unseen(m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1, LrSh0: 1, LrShn: 1})
	if err != nil {
		return err
	}
	for i, x := range m.SH {
		// NaN by its place, not by its bits
		if y := got.SH[i]; math.Float32bits(x) != math.Float32bits(y) && !(isNaN(x) && isNaN(y)) {
			return fmt.Errorf("binding chunk: half %#x, %g, becomes %g", uint16(i), x, y)
		}
	}
	return nil
}

// checkMixedNotFinite lets moments decay some of which are infinite or no number: they stay, and parameters become NaN
// where the step is: 0 times such a first moment, or by a second moment that is no number.
func checkMixedNotFinite(t *trial) error {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	first, second := []float32{0, 1, -1e-4, inf, -inf, nan}, []float32{0, 1, 1e-8, inf, nan}
	m := ref.NewModel(t.splats(700, 2))
	for i := range m.N {
		for r := range ref.ParamRows(2) {
			*m.M.At(r, i), *m.V.At(r, i) = first[t.IntN(len(first))], second[t.IntN(len(second))]
		}
	}
	got, err := t.unseen(m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1}) // rates of 0
	if err != nil {
		return err
	}
	isFinite := func(x float32) bool { return x-x == 0 }
	for i := range m.N {
		for r := range ref.ParamRows(2) {
			a, b, x := *m.M.At(r, i), *m.V.At(r, i), *m.Params.At(r, i)
			for _, moment := range [][2]float32{{a, *got.M.At(r, i)}, {b, *got.V.At(r, i)}} {
				if isFinite(moment[0]) != isFinite(moment[1]) {
					return fmt.Errorf("binding chunk: a moment of %s of splat %d: %g becomes %g", rowName(r), i,
						moment[0], moment[1])
				}
			}
			if y := *got.Params.At(r, i); isNaN(y) != (!isFinite(a) || isNaN(b)) || !isNaN(y) && y != x {
				return fmt.Errorf("binding chunk: %s of splat %d, moments %g and %g: %g becomes %g", rowName(r), i, a,
					b, x, y)
			}
		}
	}
	return nil
}

// checkMixedFinite takes first moments of log scales above the largest bfloat16 by a gradient of nearly the largest
// float, that of their penalty, which is proportional to the scale: rounded up, some would be infinite.
func checkMixedFinite(t *trial) error {
	const n, logScale = 200, 10
	largest := float64(ref.BFloatValue(0x7F7F))
	m := ref.NewModel(t.splats(n, 0))
	for i := range m.LogScales {
		m.LogScales[i], m.M.LogScales[i] = logScale, float32(largest)
	}
	got, err := t.unseen(m, layout.StepParams{InvBias1: 1, InvSqrtBias2: 1,
		ScaleReg: float32(3.4e38 / math.Exp(logScale) * 3 * n)})
	if err != nil {
		return err
	}
	for i, x := range got.M.LogScales {
		if float64(x) != largest {
			return fmt.Errorf("binding chunk: first moment of log scale %d of splat %d: %g, want %g", i%3, i/3, x,
				largest)
		}
	}
	return nil
}
