package photo

import (
	"math"
	"testing"

	"vksplat/scene/scenetest"
)

var sizes = [][4]int{{8, 6, 4, 3}, {9, 7, 4, 3}, {97, 61, 13, 60}, {5, 5, 1, 1}, {10, 10, 11, 12}, {3, 1, 7, 1},
	{1, 1, 4, 4}, {533, 948, 532, 947}, {16, 5, 7, 9}}

func TestResizeConstant(t *testing.T) {
	for _, s := range sizes {
		for _, c := range [][4]uint8{{255, 0, 17, 255}, {200, 100, 3, 128}, {255, 255, 255, 255}} {
			out := resize(scenetest.Paint(s[0], s[1], func(int, int) [4]uint8 { return c }), s[2], s[3])
			if out.Width != s[2] || out.Height != s[3] || len(out.Pix) != 4*s[2]*s[3] {
				t.Fatalf("%v: got %d x %d", s, out.Width, out.Height)
			}
			for i := 0; i < len(out.Pix); i += 4 {
				if p := [4]uint8(out.Pix[i:]); p != c {
					t.Fatalf("%v: pixel %d is %v, want %v", s, i/4, p, c)
				}
			}
		}
	}
}

// The area filter of a ramp is the ramp at the centre of the output pixel.
func TestResizeRamp(t *testing.T) {
	for _, n := range []int{240, 120, 100, 77, 239, 300} {
		ramp := func(x, y int) [4]uint8 { return [4]uint8{uint8(x), uint8(y), 0, 255} }
		out := resize(scenetest.Paint(240, 240, ramp), n, n)
		step := 240 / float64(n)
		for y := 1; y < n-1; y++ {
			for x := 1; x < n-1; x++ {
				p := out.Pix[4*(y*n+x):]
				wx, wy := (float64(x)+0.5)*step-0.5, (float64(y)+0.5)*step-0.5
				if math.Abs(float64(p[0])-wx) > 0.76 || math.Abs(float64(p[1])-wy) > 0.76 {
					t.Fatalf("to %d: pixel %d,%d is %v, want %v %v", n, x, y, p[:2], wx, wy)
				}
			}
		}
	}
}

func TestResizeAgainstDirectSum(t *testing.T) {
	src := scenetest.Paint(9, 7, func(x, y int) [4]uint8 {
		return [4]uint8{uint8(31 * x), uint8(41 * y), uint8(x * y * 7), uint8(255 - 20*x)}
	})
	out := resize(src, 4, 3)
	overlap := func(i, n, m, s int) float64 {
		step := float64(n) / float64(m)
		return max(0, min(float64(i+1)*step, float64(s+1))-max(float64(i)*step, float64(s)))
	}
	for i := range 12 {
		var sum [4]float64
		for s := range 63 {
			w := overlap(i%4, 9, 4, s%9) * overlap(i/4, 7, 3, s/9) / (9. / 4 * 7. / 3)
			a := float64(src.Pix[4*s+3])
			for c := range 3 {
				sum[c] += w * a * float64(src.Pix[4*s+c])
			}
			sum[3] += w * a
		}
		for c := range 4 {
			want := sum[c]
			if c < 3 {
				want /= sum[3]
			}
			if got := float64(out.Pix[4*i+c]); math.Abs(got-want) > 0.5001 {
				t.Errorf("pixel %d channel %d: %v, want %v", i, c, got, want)
			}
		}
	}
}

// What hides under transparent pixels does not reach visible ones.
func TestResizeWeightsByAlpha(t *testing.T) {
	src := scenetest.Paint(4, 4, func(x, _ int) [4]uint8 {
		if x%2 == 0 {
			return [4]uint8{200, 100, 50, 255}
		}
		return [4]uint8{0, 255, 0, 0}
	})
	out := resize(src, 2, 2)
	if p := [4]uint8(out.Pix); p != [4]uint8{200, 100, 50, 128} {
		t.Errorf("got %v", p)
	}
}
