package ref

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPackedFields sets every value of every field of a packed state: the others stay 0, and what is unpacked is packed
// to the same words. From value to value each number grows, from 0.
func TestPackedFields(t *testing.T) {
	for k := range 4 {
		last := float32(-1)
		used := [2]uint32{}
		for n := range uint32(stateLargest + 1) {
			var s [4]float32
			s[k] = unpackNumber(n, stateZero[k])
			w := PackState(s)
			if got := UnpackState(w); got != s {
				t.Fatalf("field %d, value %d: %v becomes %v", k, n, s, got)
			}
			if !(s[k] > last) || n == 0 && s[k] != 0 {
				t.Fatalf("field %d, value %d: %g after %g", k, n, s[k], last)
			}
			last = s[k]
			used[0], used[1] = used[0]|w[0], used[1]|w[1]
		}
		want := [4][2]uint32{{0xFFFF, 0}, {0xFFFF0000, 0}, {0, 0xFFFF}, {0, 0xFFFF0000}}[k]
		if used != want {
			t.Errorf("field %d uses bits %#x, want %#x", k, used, want)
		}
		largest := [4]float32{LargestPacked, LargestPacked, LargestPacked, 4 - 1.0/2048 - 1.0/16384}[k]
		if last != largest {
			t.Errorf("field %d goes up to %g, want %g", k, last, largest)
		}
	}
}

// TestPackedErrorBound packs numbers of all sizes: each comes back within StateErrors, a larger one as no smaller one,
// and the bound is no more than that of the format, 2^-13, and a little.
func TestPackedErrorBound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 7))
	worst := [4]float64{}
	for range 100_000 {
		var s, more [4]float32
		for k := range s {
			s[k] = float32(math.Exp2(-18 + 23*r.Float64()))
			if k == 3 {
				s[k] = float32(math.Exp2(-14 * r.Float64()))
			}
			more[k] = s[k] * (1 + float32(math.Exp2(-16*r.Float64())))
		}
		got, above := UnpackState(PackState(s)), UnpackState(PackState(more))
		most := StateErrors([4]float64{float64(s[0]), float64(s[1]), float64(s[2]), float64(s[3])})
		for k := range s {
			off := math.Abs(float64(got[k]) - float64(s[k]))
			worst[k] = max(worst[k], off/(float64(s[k])+float64(stateZero[k])))
			if off > most[k] {
				t.Fatalf("number %d: %g becomes %g, off by more than %g", k, s[k], got[k], most[k])
			}
			if above[k] < got[k] {
				t.Fatalf("number %d: %g becomes %g, %g becomes %g", k, s[k], got[k], more[k], above[k])
			}
		}
	}
	for k, x := range worst {
		if want := math.Exp2(-13); x > 1.001*want || x < 0.9*want {
			t.Errorf("number %d is off by %g at worst, want %g", k, x, want)
		}
	}
}

// TestPackedEdges packs what is no state: no field spills into another; what is too large, or no number, becomes the
// largest, and what is negative 0.
func TestPackedEdges(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	plain := [4]float32{0.25, 3, 0.5, 0.5}
	for k := range plain {
		largest := UnpackState(PackState([4]float32{inf, inf, inf, inf}))[k]
		for _, x := range []struct{ in, want float32 }{
			{inf, largest}, {math.MaxFloat32, largest}, {1e6, largest}, {nan, largest}, {-nan, largest},
			{0, 0}, {float32(math.Copysign(0, -1)), 0}, {-1e-9, 0}, {-1, 0}, {-inf, 0}, {1e-45, 0},
		} {
			s := plain
			s[k] = x.in
			want := UnpackState(PackState(plain))
			want[k] = x.want
			if got := UnpackState(PackState(s)); got != want {
				t.Errorf("%v becomes %v, want %v", s, got, want)
			}
		}
	}
	if got := UnpackState(PackState([4]float32{0, 0, 0, 1}))[3]; math.Abs(float64(got)-1) > 1.0/8192 {
		t.Errorf("a transmittance of 1 becomes %g", got)
	}
}

// fromPackedStates is RasterizeBwdDepth as the kernel does it: front to back, each bucket from a packed state.
func fromPackedStates(splats []Projected[float64], inverse []float64, l *Lists, v *View[float64], g Grid,
	vRender [][4]float64, vSums []float64, bucket int) [][12]float64 {
	img := NewImage[float64](v.Width, v.Height)
	Rasterize(img, splats, l, v, g)
	sums := RasterizeDepth(splats, inverse, l, v, g)
	out := make([][12]float64, len(l.SplatFromSlot))
	var list []blended[float64]
	eachPixel(v, l, g, func(tile []uint32, at int, c [2]float64) {
		list, _, _ = blendPixel(list[:0], splats, l, tile, c)
		up := [4]float64{vRender[at][0], vRender[at][1], vRender[at][2], vSums[at]}
		var color [3]float64
		light, behind, depth, now := 1.0, 0.0, 0.0, -1
		for k := range list {
			b := &list[k]
			if n := b.index / bucket; n != now {
				state := [4]float32{float32(color[0]), float32(color[1]), float32(color[2]), float32(b.transmittance)}
				if now = n; n > 0 {
					state = UnpackState(PackState(state))
				}
				light, behind = float64(state[3]), (sums[at]-depth)*up[3]-img.Render[at][3]*vRender[at][3]
				for ch := range 3 {
					behind += (img.Render[at][ch] - float64(state[ch])) * up[ch]
				}
			}
			id, slot := l.SplatFromSlot[tile[b.index]], tile[b.index]
			s, weight := &splats[id], b.alpha*light
			cv := inverse[id] * up[3]
			for ch, x := range s.Color {
				cv += x * up[ch]
				out[slot][6+ch] += weight * up[ch]
				color[ch] += x * b.alpha * b.transmittance
			}
			out[slot][11] += weight * up[3]
			depth += inverse[id] * b.alpha * b.transmittance
			behind -= weight * cv
			if b.raw <= MaxAlpha {
				var grad ProjectedGrad[float64]
				x, y := addAlphaGrad(&grad, s, b, light*cv-behind/(1-b.alpha))
				out[slot][9], out[slot][10] = out[slot][9]+max(x, -x), out[slot][10]+max(y, -y)
				for i := range 6 {
					out[slot][i] += grad[i]
				}
			}
			light *= 1 - b.alpha
		}
	})
	return out
}

// TestPackedErrors compares gradients of packed states with those of a backward pass that needs none: they are off, by
// no more than the bounds, and by about as much as the squares say. Colours are of different sizes.
func TestPackedErrors(t *testing.T) {
	for _, opacity := range []float64{0.05, 0.9} {
		r := rand.New(rand.NewPCG(8, uint64(100*opacity)))
		p, inverse := &Projection[float64]{}, []float64(nil)
		for i := range 400 {
			p.Splats = append(p.Splats, Projected[float64]{Mean2D: [2]float64{30 * r.Float64(), 20 * r.Float64()},
				Conic: [3]float64{0.02, 0.005 * r.Float64(), 0.03}, Opacity: opacity * r.Float64(),
				Color: [3]float64{0.01 * r.Float64(), r.Float64(), 20 * r.Float64()}})
			p.Extents = append(p.Extents, [3]float64{30, 30, 30})
			p.DepthKeys = append(p.DepthKeys, math.Float32bits(1+float32(i)/100))
			inverse = append(inverse, 1/(1+float64(i)/100))
		}
		v := &View[float64]{Width: 30, Height: 20, Background: [3]float64{0.2, 0.4, 9}}
		l := NewLists(p, v.Grid())
		up, vSums := make([][4]float64, 600), make([]float64, 600)
		for i := range up {
			up[i], vSums[i] = [4]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()},
				r.NormFloat64()
		}
		want, beside := RasterizeBwdDepth(p.Splats, inverse, l, v, v.Grid(), up, vSums)
		got := fromPackedStates(p.Splats, inverse, l, v, v.Grid(), up, vSums, 64)
		whole := fromPackedStates(p.Splats, inverse, l, v, v.Grid(), up, vSums, 1<<20)
		bounds := PackedErrors(p.Splats, inverse, l, v, v.Grid(), up, vSums, 64)
		nearest, squares, allowed, scale := 0.0, 0.0, 0.0, 0.0
		for i := range want {
			exact := [12]float64(append(want[i][:], beside[i][:]...))
			for k, x := range exact {
				off := math.Abs(got[i][k] - x)
				if off > bounds[i].Most[k]+1e-9*(1+math.Abs(x)) {
					t.Fatalf("opacity %g, slot %d, number %d: %g, want %g within %g", opacity, i, k, got[i][k], x,
						bounds[i].Most[k])
				}
				if math.Abs(whole[i][k]-x) > 1e-9*(1+math.Abs(x)) {
					t.Fatalf("opacity %g, slot %d, number %d: in one bucket %g, want %g", opacity, i, k, whole[i][k], x)
				}
				if bounds[i].Most[k] > 0 {
					nearest = max(nearest, off/bounds[i].Most[k])
				}
				squares, allowed, scale = squares+off*off, allowed+bounds[i].Square[k], scale+x*x
			}
		}
		t.Logf("opacity %g: relative norm %.3g, %.3g allowed; %.2f of a bound", opacity, math.Sqrt(squares/scale),
			math.Sqrt(allowed/scale), nearest)
		if ratio := math.Sqrt(squares / allowed); nearest < 0.3 || ratio < 0.2 || ratio > 1 {
			t.Errorf("opacity %g: %g of the squares, %g of a bound", opacity, ratio, nearest)
		}
	}
}

// packNumber rounds to nearest and clamps to 0 and the largest packed number; what is no number becomes the largest.
func packNumber(x, zero float32) uint32 {
	if x < 0 {
		x = 0
	}
	n := uint64(math.Float32bits(x+zero)&0x7FFFFFFF) - uint64(math.Float32bits(zero)) + 1<<(stateDropped-1)
	return uint32(min(n>>stateDropped, stateLargest))
}

// PackState returns the two words of a state: red and, above, green; blue and the transmittance.
func PackState(s [4]float32) (w [2]uint32) {
	for k, x := range s {
		w[k/2] |= packNumber(x, stateZero[k]) << (16 * (k % 2))
	}
	return w
}
