package metric

import (
	"math"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// publishedMetrics is what testdata/metrics.py prints: values of scikit-image, torchmetrics and numpy's least squares.
var publishedMetrics = map[string]float64{
	"gsplat PSNR": 21.865695942, "gsplat SSIM": 0.835731387, "inria PSNR": 21.866097229, "inria SSIM": 0.866093679,
	"gsplat affine PSNR": 26.410504427, "gsplat affine SSIM": 0.857787244, "inria affine PSNR": 26.407759003,
	"inria affine SSIM":  0.886429856,
	"masked affine PSNR": 26.730745477, "gsplat quadratic PSNR": 24.362808495, "gsplat quadratic SSIM": 0.868125546,
	"inria quadratic PSNR": 24.361198895,
	"inria quadratic SSIM": 0.896602085, "masked quadratic PSNR": 24.406026394, "masked PSNR": 21.891784316,
	"masked inria SSIM": 0.894924217,
}

const publishedWidth, publishedHeight = 64, 48

// publishedPictures are those of testdata/metrics.py.
func publishedPictures() (photo scene.Image, render []float32) {
	photo = scene.Image{Width: publishedWidth, Height: publishedHeight,
		Pix: make([]uint8, 4*publishedWidth*publishedHeight)}
	render = make([]float32, 3*publishedWidth*publishedHeight)
	state := uint32(12345)
	next := func() int {
		state = state*1664525 + 1013904223
		return int(state)
	}
	for y := range publishedHeight {
		for x := range publishedWidth {
			i := y*publishedWidth + x
			for c := range 3 {
				value := 5*x - 20 + y*(c+1)/2 + next()>>26
				photo.Pix[4*i+c] = uint8(min(max(value, 0), 255))
				noise := next()
				value = (7 + c) * value
				if value < 0 { // the quotient is rounded down
					value -= 8
				}
				value = value/9 + 3*x/10 + 8*c + noise>>27
				render[3*i+c] = float32(min(max(1000*value+noise>>16%1000, 0), 255000)) / 255000
			}
			photo.Pix[4*i+3] = 255
		}
	}
	return photo, render
}

func publishedMask() []uint32 {
	m := photo.NewMask(publishedWidth, publishedHeight)
	for i := range publishedWidth * publishedHeight {
		x, y := i%publishedWidth, i/publishedWidth
		if y >= 10 && y < 30 && x >= 20 && x < 45 || x >= 60 {
			m.Drop(i)
		}
	}
	return m.Words
}

// TestMetricsPublished compares metrics of both protocols, plain, masked and after colour correction, with other
// people's implementations.
func TestMetricsPublished(t *testing.T) {
	photo, render := publishedPictures()
	quantised := slices.Clone(render)
	Quantise(quantised)
	mask := publishedMask()
	got := map[string]float64{}
	measure := func(name string, render []float32, padding Padding, mask []uint32) {
		psnr, ssim, err := Compare(photo, render, padding, mask)
		if err != nil {
			t.Fatal(err)
		}
		got[name+" PSNR"], got[name+" SSIM"] = psnr, ssim
	}
	measure("gsplat", render, PaddingValid, nil)
	measure("inria", quantised, PaddingSame, nil)
	measure("masked", render, PaddingValid, mask)
	measure("masked inria", quantised, PaddingSame, mask)
	for _, how := range []string{ColorAffine, ColorQuadratic} {
		correct := func(render []float32, mask []uint32) []float32 {
			out := must.Get(CorrectColors(how, photo, render, mask))(t)
			return out
		}
		measure("gsplat "+how, correct(render, nil), PaddingValid, nil)
		measure("inria "+how, correct(quantised, nil), PaddingSame, nil)
		measure("masked "+how, correct(render, mask), PaddingValid, mask)
	}
	for name, want := range publishedMetrics {
		if v := got[name]; !(math.Abs(v-want) < 1e-5) {
			t.Errorf("%s: %.9f, want %.9f", name, v, want)
		}
	}
}

// Pictures that leave a fit nothing, or little, to go by come back as numbers between 0 and 1: gray ones, whose
// channels say the same, one colour, black.
func TestCorrectColorsDegenerate(t *testing.T) {
	const w, h = 16, 12
	paint := func(at func(i int) (photo, render float32)) (scene.Image, []float32) {
		photo := scene.Image{Width: w, Height: h, Pix: make([]uint8, 4*w*h)}
		render := make([]float32, 3*w*h)
		for i := range w * h {
			p, r := at(i)
			for c := range 3 {
				photo.Pix[4*i+c], render[3*i+c] = scene.ToByte(float64(255*p)), r
			}
		}
		return photo, render
	}
	ramp := func(i int) float32 { return 0.1 + 0.8*float32(i)/(w*h) }
	for name, at := range map[string]func(i int) (float32, float32){
		"gray":          func(i int) (float32, float32) { return ramp(i), 0.5 * ramp(i) },
		"one colour":    func(int) (float32, float32) { return 0.25, 0.5 },
		"black":         func(int) (float32, float32) { return 0, 0 },
		"photo of one":  func(i int) (float32, float32) { return 0.5, ramp(i) },
		"render of one": func(i int) (float32, float32) { return ramp(i), 0.5 },
	} {
		for _, how := range []string{ColorAffine, ColorQuadratic} {
			photo, render := paint(at)
			out := must.Get(CorrectColors(how, photo, render, nil))(t)
			for i, v := range out {
				if !(v >= 0 && v <= 1) {
					t.Fatalf("%s, %s: value %d is %v", name, how, i, v)
				}
			}
			if psnr, _, err := Compare(photo, out, PaddingValid, nil); name == "gray" && (err != nil || psnr < 50) {
				t.Errorf("%s, %s: %v dB, %v", name, how, psnr, err)
			}
		}
	}
	photo, render := paint(func(i int) (float32, float32) { return ramp(i), ramp(i) })
	if _, err := CorrectColors("cubic", photo, render, nil); err == nil {
		t.Error("an unknown map passes")
	}
	if _, err := CorrectColors(ColorAffine, photo, render, make([]uint32, w*h/32)); err == nil {
		t.Error("no pixel that counts, and no error")
	}
	if _, err := CorrectColors(ColorAffine, photo, render[3:], nil); err == nil {
		t.Error("sizes that do not agree pass")
	}
}
