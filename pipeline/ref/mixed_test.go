package ref

import (
	"math"
	"slices"
	"testing"

	"vksplat/shaders/layout"
)

// TestHalves goes through all halves and bfloat16: their values, and that rounding leaves them as they are whatever the
// random bits.
func TestHalves(t *testing.T) {
	for h := range 1 << 16 {
		x, want := layout.HalfValue(uint16(h)), 0.0
		switch e, f := h>>10&31, float64(h&0x3FF); {
		case e == 31 && f == 0:
			want = math.Inf(1)
		case e == 31:
			want = math.NaN()
		case e == 0:
			want = math.Ldexp(f, -24)
		default:
			want = math.Ldexp(1024+f, e-25)
		}
		if h>>15 == 1 {
			want = -want
		}
		if float64(x) != want && !(x != x && want != want) {
			t.Fatalf("half %#x is %g, want %g", h, x, want)
		}
		for _, random := range []uint16{0, 1, 1 << 15, 0xFFFF} {
			if got := layout.RoundHalf(x, random); got != uint16(h) && x == x {
				t.Fatalf("half %#x, %g, becomes %#x by %#x", h, x, got, random)
			}
			if y := BFloatValue(uint16(h)); y == y && RoundBFloat(y, random) != uint16(h) {
				t.Fatalf("bfloat16 %#x, %g, becomes %#x by %#x", h, y, RoundBFloat(y, random), random)
			}
		}
	}
}

// TestRoundingEdges rounds numbers that neither format holds.
func TestRoundingEdges(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, random := range []uint16{0, 1 << 15, 0xFFFF} {
		for _, x := range []struct{ in, half, bfloat float32 }{
			{nan, nan, nan}, {inf, inf, inf}, {-inf, -inf, -inf}, {65505, 65504, 0}, {-1e9, -65504, 0},
			{math.MaxFloat32, 65504, BFloatValue(0x7F7F)},
			{-math.MaxFloat32, -65504, BFloatValue(0xFF7F)},
		} {
			got := layout.HalfValue(layout.RoundHalf(x.in, random))
			if got != x.half && !(got != got && x.half != x.half) {
				t.Errorf("half of %g: %g, want %g", x.in, got, x.half)
			}
			if got := BFloatValue(RoundBFloat(x.in, random)); x.bfloat != 0 && got != x.bfloat &&
				!(got != got && x.bfloat != x.bfloat) {
				t.Errorf("bfloat16 of %g: %g, want %g", x.in, got, x.bfloat)
			}
		}
	}
	// A moment beyond the largest bfloat16, or one that is no number, keeps the other from being rounded up.
	for _, m := range []float32{nan, -inf, -math.MaxFloat32} {
		a, b := RoundMoments(m, 1+1.0/256, 0xFFFF, 0xFFFF)
		if c, d := RoundMoments(1+1.0/256, -m, 0xFFFF, 0xFFFF); a != RoundBFloat(m, 0) || b != 0x3F80 || c != b ||
			d != RoundBFloat(-m, 0) {
			t.Errorf("moments of 1 + 2^-8 and %g: %#x, %#x and %#x, %#x", m, a, b, c, d)
		}
	}
	// The halves around 1 + 2^-11 are 1 and 1 + 2^-10, those around 2^-25 are 0 and 2^-24.
	for random, want := range map[uint16][2]uint16{0x7FF8: {0x3C00, 0}, 0x7FFF: {0x3C00, 0}, 0x8000: {0x3C01, 1}} {
		a, b := layout.RoundHalf(1+1.0/2048, random), layout.RoundHalf(1.0/(1<<25), random)
		if a != want[0] || b != want[1] {
			t.Errorf("random %#x: %#x and %#x, want %#x", random, a, b, want)
		}
	}
}

// TestRoundingUnbiased rounds each of some numbers by the random bits of one row of many splats: their mean is the
// number. Nearest rounding is far outside the limit.
func TestRoundingUnbiased(t *testing.T) {
	const n = 40000
	for _, x := range []float32{1.0003, -0.70011, 3e-5, 6e-5, -6.2e-5, 1.3e-7, 2e-9, 1000.3, 60001, 1e-20, -3.3e-21,
		1.7e-38, 3e30} {
		for _, r := range []int{layout.RowSh, layout.RowSh + 1, layout.RowSh + 47} {
			var half, first, second float64
			for splat := range n {
				a, b, value := Rounding{Seed: 42, Step: 1234}.Bits(splat, r)
				half += float64(layout.HalfValue(layout.RoundHalf(x, value)))
				a, b = RoundMoments(x, x, a, b)
				first, second = first+float64(BFloatValue(a)), second+float64(BFloatValue(b))
			}
			// A rounding's deviation is at most half a unit in the last place; the mean of n is within five standard
			// errors.
			check := func(name string, sum, unit float64) {
				if got, limit := sum/n, 5*0.5*unit/math.Sqrt(n); math.Abs(got-float64(x)) > limit {
					t.Errorf("row %d: %s of %g: %g on average, off by %g, the limit is %g", r, name, x, got,
						got-float64(x), limit)
				}
			}
			_, exponent := math.Frexp(float64(x))
			if math.Abs(float64(x)) < 65504 {
				check("half", half, math.Ldexp(1, max(exponent-11, -24)))
			}
			check("first moment", first, math.Ldexp(1, exponent-8))
			check("second moment", second, math.Ldexp(1, exponent-8))
		}
	}
}

// TestRoundingEveryBits rounds by all random bits once: the mean is the number to the bit, where float32 has no more
// than the bits that they round, and below 2^-14 to 2^-38.
func TestRoundingEveryBits(t *testing.T) {
	for _, x := range []float32{1.0003, -0.70011, 1000.3, 60001, 6.2e-5, 6e-5, -3e-5, 1.3e-7, 2e-9, 3e-12} {
		var half, bfloat float64
		for random := range 1 << 16 {
			half += float64(layout.HalfValue(layout.RoundHalf(x, uint16(random)))) / (1 << 16)
			bfloat += float64(BFloatValue(RoundBFloat(x, uint16(random)))) / (1 << 16)
		}
		limit := 0.0
		if math.Abs(float64(x)) < 1.0/(1<<14) {
			limit = 1.0 / (1 << 38)
		}
		if math.Abs(half-float64(x)) > limit {
			t.Errorf("half of %g: %g on average, off by %g", x, half, half-float64(x))
		}
		if bfloat != float64(x) {
			t.Errorf("bfloat16 of %g: %g on average", x, bfloat)
		}
	}
}

// TestRoundingBits looks at the bits themselves: every bit is set half of the time, and no two steps, splats or uses of
// one row agree more often than chance has it.
func TestRoundingBits(t *testing.T) {
	const n = 30000
	limit := 5 * 0.5 / math.Sqrt(n)
	words := func(splat, step, r int) uint64 {
		a, b, v := Rounding{Seed: 7, Step: uint32(step)}.Bits(splat, r)
		return uint64(a) | uint64(b)<<16 | uint64(v)<<32
	}
	shares := func(name string, f func(i int) uint64) {
		var set [48]int
		for i := range n {
			for bit, w := 0, f(i); bit < 48; bit++ {
				set[bit] += int(w >> bit & 1)
			}
		}
		for bit, k := range set {
			if share := float64(k) / n; math.Abs(share-0.5) > limit {
				t.Errorf("%s: bit %d is 1 in %.4f of all", name, bit, share)
			}
		}
	}
	shares("set", func(i int) uint64 { return words(i, 3, i%59) })
	shares("set in one row", func(i int) uint64 { return words(i, 3, 58) })
	shares("step and next", func(i int) uint64 { return words(i/100, i%100, 5) ^ words(i/100, i%100+1, 5) })
	shares("splat and next", func(i int) uint64 { return words(i, 9, 20) ^ words(i+1, 9, 20) })
	shares("moments and value", func(i int) uint64 { w := words(i, 9, 30); return w ^ (w>>16 | w<<32) })
}

// TestRoundingRows wants the random bits of a splat's rows to spread evenly: of 59 some seven in every eighth.
func TestRoundingRows(t *testing.T) {
	const rows, parts = 59, 8
	for splat := range 1000 {
		var counts [3][parts]int
		for r := range rows {
			a, b, value := Rounding{Seed: 7, Step: 11}.Bits(splat, r)
			for use, bits := range []uint16{a, b, value} {
				counts[use][int(bits)*parts>>16]++
			}
		}
		for use, list := range counts {
			if least, most := slices.Min(list[:]), slices.Max(list[:]); least < 5 || most > 10 {
				t.Fatalf("splat %d, use %d: %d rows in each eighth", splat, use, list)
			}
		}
	}
}

// TestRoundingIndependent multiplies the errors of a parameter and of its moments, and of two steps: what they have in
// common would move their mean.
func TestRoundingIndependent(t *testing.T) {
	const n = 40000
	const half, bfloat = 1.0 / (1 << 10), 1.0 / (1 << 7) // units in the last place from 1 to 2
	const x = 1 + half/2
	const y = 1 + bfloat/2
	errors := func(splat, step, r int) [3]float64 {
		a, b, value := Rounding{Seed: 3, Step: uint32(step)}.Bits(splat, r)
		a, b = RoundMoments(y, y, a, b)
		return [3]float64{(float64(BFloatValue(a)) - y) / bfloat, (float64(BFloatValue(b)) - y) / bfloat,
			(float64(layout.HalfValue(layout.RoundHalf(x, value))) - x) / half}
	}
	for _, r := range []int{layout.RowSh, layout.RowSh + 20, layout.RowSh + 47} {
		var sums [3][6]float64
		for splat := range n {
			e, next := errors(splat, 5, r), errors(splat, 6, r)
			for i, a := range e {
				for j, b := range e {
					if i != j {
						sums[i][j] += a * b
					}
					sums[i][3+j] += a * next[j]
				}
			}
		}
		// each product is +-1/4
		for i, row := range sums {
			for j, sum := range row {
				if mean := sum / n; math.Abs(mean) > 5*0.25/math.Sqrt(n) {
					t.Errorf("row %d: errors %d and %d: product %.5f on average, of 0.25", r, i, j, mean)
				}
			}
		}
	}
}

// TestTrainsBelowUnit takes steps of a fiftieth of a unit in the last place: they add up, and where the gradient stops
// the moments decay.
func TestTrainsBelowUnit(t *testing.T) {
	const splats, steps = 200, 400
	const unit = 1.0 / 2048 // of halves from 0.5 to 1
	m := NewModel(NewParams[float32](splats, 0))
	g := NewParams[float32](splats, 0)
	for i := range m.SH {
		m.SH[i], g.SH[i] = 0.75, -1
	}
	for step := 1; step <= steps; step++ {
		AdamModel(m, g, Rates{SH0: unit / 50}, DefaultAdam, step)
		Rounding{Seed: 1, Step: uint32(step)}.Store(m)
	}
	mean := 0.0
	for _, x := range m.SH {
		mean += (float64(x) - 0.75) / float64(len(m.SH))
	}
	// Every step is 1/50 of a unit, for the gradient is constant; each splat's sum wanders by up to sqrt(400/50) units.
	if want := steps * unit / 50; math.Abs(mean-want) > 0.06*want {
		t.Errorf("%d steps went %g, want %g", steps, mean, want)
	}
	v := 0.0
	for _, x := range m.V.SH {
		v += float64(x) / float64(len(m.V.SH))
	}
	if want := 1 - math.Pow(0.999, steps); math.Abs(v-want) > 0.01*want {
		t.Errorf("the second moment is %g on average, want %g", v, want)
	}
	clear(g.SH)
	for step := steps + 1; step <= 2*steps; step++ {
		AdamModel(m, g, Rates{}, DefaultAdam, step)
		Rounding{Seed: 1, Step: uint32(step)}.Store(m)
	}
	decayed := 0.0
	for _, x := range m.V.SH {
		decayed += float64(x) / float64(len(m.V.SH))
	}
	if want := v * math.Pow(0.999, steps); math.Abs(decayed-want) > 0.02*want {
		t.Errorf("without gradients it becomes %g on average, want %g", decayed, want)
	}
}

// RoundMoments rounds a first and a second moment, both towards 0 if one of them is beyond the largest bfloat16 or no
// number.
func RoundMoments(m, v float32, first, second uint16) (uint16, uint16) {
	if !belowLargest(m) || !belowLargest(v) {
		first, second = 0, 0
	}
	return RoundBFloat(m, first), RoundBFloat(v, second)
}

// Store rounds what a step has computed to what a model in mixed precision can hold.
func (c Rounding) Store(m *Model[float32]) {
	row := 0
	first, second := m.M.Tensors(), m.V.Tensors()
	for k, t := range m.Params.Tensors() {
		for i := range t.Data {
			splat, r := i/t.Width, row+i%t.Width
			a, b, value := c.Bits(splat, r)
			a, b = RoundMoments(first[k].Data[i], second[k].Data[i], a, b)
			first[k].Data[i], second[k].Data[i] = BFloatValue(a), BFloatValue(b)
			if r >= layout.RowSh {
				t.Data[i] = layout.HalfValue(layout.RoundHalf(t.Data[i], value))
			}
		}
		row += t.Width
	}
}
