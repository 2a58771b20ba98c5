package evaluate

import (
	"errors"
	"math"
	"slices"
	"testing"

	"vksplat/internal/run/meter"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
)

// halfRight is a photo and a rendering that differs from it in the left half alone, and the mask of the right one.
func halfRight() (shot scene.Image, render []float32, mask []uint32) {
	const w, h = 32, 24
	mask = slices.Repeat([]uint32{0xffff0000}, h)
	shot = scene.Image{Width: w, Height: h, Pix: make([]uint8, 4*w*h)}
	for i := range shot.Pix {
		shot.Pix[i] = uint8(40 + i*37%170)
	}
	render = photo.FloatRGB(shot)
	for i := range render {
		if i/3%w < w/2 {
			render[i] = float32(math.Mod(float64(render[i])+0.35, 1))
		}
	}
	return shot, render, mask
}

func TestScores(t *testing.T) {
	photo, render, mask := halfRight()
	s := &Scorer{Protocol: ProtocolOf(ProtocolINRIA), Correct: metric.ColorAffine,
		unmasked: true}
	list, err := s.scores(photo, render, mask, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		t.Helper()
		if s := Named(list, name); s.Known {
			return s.Value
		}
		t.Fatalf("%s is not known", name)
		return 0
	}
	if value("PSNR") != meter.MaxPSNR || value("cc_psnr") != meter.MaxPSNR || !(value("unmasked_psnr") < 20) ||
		!(value("unmasked_ssim") < value("SSIM")) {
		t.Errorf("masked and not: %v", list)
	}
	for _, name := range []string{"LPIPS", "cc_lpips", "unmasked_lpips"} {
		if got := ScoreText(Named(list, name)); got != "n/a" {
			t.Errorf("%s, which nobody measured: %s", name, got)
		}
	}
	s = &Scorer{Protocol: ProtocolOf(ProtocolGsplat), Correct: ColorNone,
		lpips: func(scene.Image, []float32, []uint32) (float64, error) { return 0.125, nil }}
	if list, err = s.scores(photo, render, nil, nil); err != nil || len(list) != 3 || value("LPIPS") != 0.125 {
		t.Errorf("%v, %v", list, err)
	}
	failed := errors.New("no")
	s.lpips = func(scene.Image, []float32, []uint32) (float64, error) { return 0, failed }
	if _, err = s.scores(photo, render, nil, nil); !errors.Is(err, failed) {
		t.Errorf("the error of a metric: %v", err)
	}
}
