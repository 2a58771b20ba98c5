package metric

import (
	"math"
	"math/rand/v2"
	"testing"

	"vksplat/scene/photo"
)

// affineClose fails the test unless a is within limit of want.
func affineClose(t *testing.T, name string, a, want [12]float64, limit float64) {
	t.Helper()
	for i := range a {
		if !(math.Abs(a[i]-want[i]) <= limit) {
			t.Errorf("%s: got %v, want %v", name, a, want)
			return
		}
	}
}

// randomPicture has independent channels around a mean.
func randomPicture(r *rand.Rand, n int, mean, spread float64) []float32 {
	out := make([]float32, 3*n)
	for i := range out {
		out[i] = float32(mean + spread*(r.Float64()-0.5))
	}
	return out
}

var someAffine = [12]float64{1.3, -0.1, 0.05, 0.02, 0.1, 0.7, -0.2, 0.1, 0, 0.25, 0.9, -0.05}

// TestFitExposureFinds looks for a known map: ordinary contrast, little contrast far from 0, noise, and a right half
// that does not agree.
func TestFitExposureFinds(t *testing.T) {
	const w, h = 31, 24
	r := rand.New(rand.NewPCG(1, 1))
	render := randomPicture(r, w*h, 0.5, 1)
	photo := ApplyExposure(someAffine, render)
	affineClose(t, "exact", FitExposure(render, photo, w, h, nil), someAffine, 1e-6)
	for i := range w * h {
		if i%w >= w/2 {
			photo[3*i] = 100
		}
	}
	affineClose(t, "right half of nonsense", FitExposure(render, photo, w, h, nil), someAffine, 1e-6)

	flat := randomPicture(r, w*h, 0.8, 0.01)
	affineClose(t, "little contrast", FitExposure(flat, ApplyExposure(someAffine, flat), w, h, nil), someAffine, 1e-4)
	for i := range photo {
		photo[i] = ApplyExposure(someAffine, render)[i] + float32(0.01*r.NormFloat64())
	}
	affineClose(t, "noise", FitExposure(render, photo, w, h, nil), someAffine, 0.01)
}

// TestFitExposureIsLeastSquares checks that the residuals are orthogonal to what they are fitted with.
func TestFitExposureIsLeastSquares(t *testing.T) {
	const w, h = 20, 10
	r := rand.New(rand.NewPCG(2, 1))
	render, shot := randomPicture(r, w*h, 0.5, 0.8), randomPicture(r, w*h, 0.4, 0.6)
	mask := make([]uint32, (w*h+31)/32)
	for i := range mask {
		mask[i] = r.Uint32()
	}
	a := FitExposure(render, shot, w, h, mask)
	var dot [12]float64
	for i := range w * h {
		if i%w >= w/2 || !photo.Counts(mask, i) {
			continue
		}
		c := [4]float64{float64(render[3*i]), float64(render[3*i+1]), float64(render[3*i+2]), 1}
		for k := range 3 {
			residual := -float64(shot[3*i+k])
			for j := range 4 {
				residual += a[4*k+j] * c[j]
			}
			for j := range 4 {
				dot[4*k+j] += residual * c[j]
			}
		}
	}
	affineClose(t, "residuals", dot, [12]float64{}, 1e-10)
}

// TestFitExposureWithoutContrast has renderings that do not determine the map.
func TestFitExposureWithoutContrast(t *testing.T) {
	const w, h = 16, 8
	r := rand.New(rand.NewPCG(3, 1))
	one := make([]float32, 3*w*h)
	photo := randomPicture(r, w*h, 0.5, 0.4)
	for i := range one {
		one[i] = 0.25
	}
	a := FitExposure(one, photo, w, h, nil)
	want := identityAffine
	var mean [3]float64
	for i := range w * h {
		for k := range 3 {
			if i%w < w/2 {
				mean[k] += float64(photo[3*i+k]) / (w * h / 2)
			}
		}
	}
	for k := range 3 {
		want[4*k+3] = mean[k] - 0.25
	}
	affineClose(t, "one colour", a, want, 1e-12)

	// Grey: a gain is found along grey, colours keep their differences.
	grey := make([]float32, 3*w*h)
	for i := range w * h {
		v := r.Float32()
		grey[3*i], grey[3*i+1], grey[3*i+2] = v, v, v
	}
	gain := ApplyExposure([12]float64{0: 1.5, 5: 1.5, 10: 1.5}, grey)
	third := 0.5 / 3
	affineClose(t, "grey", FitExposure(grey, gain, w, h, nil),
		[12]float64{1 + third, third, third, 0, third, 1 + third, third, 0, third, third, 1 + third, 0}, 1e-6)
	got := ApplyExposure(FitExposure(grey, gain, w, h, nil), grey)
	if mse, err := MSE(got, gain, nil); err != nil || mse > 1e-12 {
		t.Errorf("grey: mean squared error %g, %v", mse, err)
	}
}

// TestFitExposureOfNothing gives the identity where nothing can be fitted, whatever the sizes.
func TestFitExposureOfNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	good, nan := randomPicture(r, 12, 0.5, 1), randomPicture(r, 12, 0.5, 1)
	nan[0] = float32(math.NaN())
	for name, a := range map[string][12]float64{
		"no pixel counts": FitExposure(good, good, 4, 3, []uint32{0}),
		"one column":      FitExposure(good, good, 1, 12, nil),
		"NaN":             FitExposure(nan, good, 4, 3, nil),
		"other sizes":     FitExposure(good, good[:9], 4, 3, nil),
		"short mask":      FitExposure(good, good, 4, 3, []uint32{}),
		"no size":         FitExposure(nil, nil, 0, 0, nil),
	} {
		affineClose(t, name, a, identityAffine, 0)
	}
}

func TestRightHalf(t *testing.T) {
	const w, h = 7, 5
	mask := []uint32{0xAAAAAAAA, 0}
	for _, m := range [][]uint32{nil, mask} {
		half := RightHalf(m, w, h)
		for i := range w * h {
			if got, want := photo.Counts(half, i), i%w >= 3 && photo.Counts(m, i); got != want {
				t.Errorf("pixel %d of mask %v: %v, want %v", i, m, got, want)
			}
		}
		if half[1]>>(w*h-32) != 0 {
			t.Error("bits beyond the last pixel are set")
		}
	}
}
