package synth

import (
	"bytes"
	"math"
	"testing"

	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
)

func TestRoughPhoto(t *testing.T) {
	s := must.Get(New(Options{Images: 3, Width: 37, Height: 21, Points: 10}))(t)
	rough, small := s.Rough(1, 4), s.Photo(1, 4)
	if rough.Width != 37 || rough.Height != 21 || len(rough.Pix) != 4*37*21 {
		t.Fatalf("%dx%d in %d bytes", rough.Width, rough.Height, len(rough.Pix))
	}
	for y := range 21 {
		for x := range 37 {
			at := small.PixOffset(x/4, y/4)
			if got, want := rough.Pix[4*(37*y+x):][:4], small.Pix[at:at+4]; !bytes.Equal(got, want) {
				t.Fatalf("pixel %d, %d is %v, want %v", x, y, got, want)
			}
		}
	}
}

// TestSynthSplats wants flat splats that lie along surfaces, in the capture's frame.
func TestSynthSplats(t *testing.T) {
	o := Options{Images: 3, Width: 64, Height: 48, Points: 3000, Seed: 3}
	s := must.Get(New(o))(t)
	o.Scale, o.Offset = 2, [3]float64{10, 20, 30}
	moved := must.Get(New(o))(t)
	a, b, points := s.Splats(2), moved.Splats(2), s.Points()
	flat := 0
	for i := range a.N {
		for k := range 3 {
			if x := 2*float64(a.Means[3*i+k]) + o.Offset[k]; math.Abs(x-float64(b.Means[3*i+k])) > 1e-4 {
				t.Fatalf("splat %d is at %g, want %g", i, b.Means[3*i+k], x)
			}
			if d := b.LogScales[3*i+k] - a.LogScales[3*i+k]; math.Abs(float64(d)-math.Ln2) > 1e-5 {
				t.Fatalf("log scale %g of splat %d, %g in half the size", b.LogScales[3*i+k], i, a.LogScales[3*i+k])
			}
		}
		off := 0.0
		for k, x := range points[i].Pos {
			off += geom.Square(float64(a.Means[3*i+k]) - x)
		}
		// Off the surface by less than five of the largest splats that a normal distribution has.
		if limit := 5 * math.Exp(float64(max(a.LogScales[3*i], a.LogScales[3*i+1],
			a.LogScales[3*i+2]))+1.5); math.Sqrt(off) > limit {
			t.Errorf("splat %d is %g from its point, its size is %g", i, math.Sqrt(off), limit)
		}
		if a.LogScales[3*i+2] < min(a.LogScales[3*i], a.LogScales[3*i+1]) {
			flat++
		}
	}
	if flat < a.N*95/100 {
		t.Errorf("%d of %d splats are flat", flat, a.N)
	}
}
