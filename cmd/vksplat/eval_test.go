package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/suite"
	"vksplat/pipeline"
	"vksplat/pipeline/lpips"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
)

// halfRight is a photo and a rendering that differs from it in the left half alone, and the mask of the right one.
func halfRight() (shot scene.Image, render []float32, mask []uint32) {
	const w, h = 32, 24
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
	return shot, render, metric.RightHalf(nil, w, h)
}

func TestScores(t *testing.T) {
	photo, render, mask := halfRight()
	s := &evaluate.Scorer{Protocol: evaluate.ProtocolOf(evaluate.ProtocolINRIA), Correct: metric.ColorAffine,
		Unmasked: true}
	list, err := s.Scores(photo, render, mask, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) float64 {
		t.Helper()
		if s := evaluate.Named(list, name); s.Known {
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
		if got := evaluate.ScoreText(evaluate.Named(list, name)); got != "n/a" {
			t.Errorf("%s, which nobody measured: %s", name, got)
		}
	}
	s = &evaluate.Scorer{Protocol: evaluate.ProtocolOf(evaluate.ProtocolGsplat), Correct: evaluate.ColorNone,
		Lpips: func(scene.Image, []float32, []uint32) (float64, error) { return 0.125, nil }}
	if list, err = s.Scores(photo, render, nil, nil); err != nil || len(list) != 3 || value("LPIPS") != 0.125 {
		t.Errorf("%v, %v", list, err)
	}
	failed := errors.New("no")
	s.Lpips = func(scene.Image, []float32, []uint32) (float64, error) { return 0, failed }
	if _, err = s.Scores(photo, render, nil, nil); !errors.Is(err, failed) {
		t.Errorf("the error of a metric: %v", err)
	}
}

// TestSuitePresets wants every preset to be one that can be run, with the captures and means that papers have.
func TestSuitePresets(t *testing.T) {
	for name, captures := range map[string]int{"mipnerf360": 9, "tanks-and-temples": 2, "deep-blending": 2,
		"nerf-synthetic": 8} {
		file := filepath.Join(t.TempDir(), "suite.toml")
		if err := os.WriteFile(file,
			[]byte("out = \"runs\"\ndata = \"data\"\npreset = \""+name+
				"\"\nsettings = { iterations = 7000 }\n[recipe.default]\n[recipe.fast]\npreset = \"fast\"\n"),
			0o666); err != nil {
			t.Fatal(err)
		}
		plan, err := suite.Read(file, settingsForSuite())
		if err != nil {
			t.Fatal(err)
		}
		runs, err := plan.Runs(&suite.Options{})
		if err != nil || len(plan.Captures) != captures || len(runs) != 2*3*captures {
			t.Errorf("%s: %d captures, %d runs, %v", name, len(plan.Captures), len(runs), err)
		}
		if last := plan.Means[len(plan.Means)-1]; len(last.Captures) != captures {
			t.Errorf("%s: the mean %q is of %d captures", name, last.Name, len(last.Captures))
		}
		if text := strings.Join(runs[len(runs)-1].Train(), " "); !strings.Contains(text, "--seed=44 ") ||
			!strings.Contains(text, "--preset=fast") || !strings.Contains(text, "--iterations=7000") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if got := len(suite.PresetNames()); got != 4 {
		t.Errorf("%d presets, this test knows 4", got)
	}
}

func FuzzSuiteFile(f *testing.F) {
	f.Add("out = \"runs\"\npreset = \"mipnerf360\"\ndata = \"d\"\nonly = [\"garden\"]\n")
	f.Add("out = \"runs\"\n[capture.a]\npath = \"a\"\ndownscale = 2\n[recipe.r]\niterations = 7\n[mean]\nm = [\"a\"]\n")
	f.Add("settings = 3\n[sources]\nx = { seed = 1 }\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "suite.toml")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		plan, err := suite.Read(file, settingsForSuite())
		if err == nil {
			_, err = plan.Runs(&suite.Options{})
		}
		if err != nil && !errors.Is(err, fault.ErrUsage) {
			t.Errorf("no usage error: %v", err)
		}
	})
}

func FuzzCaptureRecord(f *testing.F) {
	f.Add([]byte(`{"scene": "/a", "downscale": 2, "held_out": ["a"], "background": [0, 0, 0]}`))
	f.Add([]byte(`{"scene": 3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, output.CaptureFile), data, 0o666); err != nil {
			t.Fatal(err)
		}
		if rec, err := captured.ReadRecord(dir); err != nil && !errors.Is(err, fault.ErrData) || err == nil &&
			rec.Scene == "" {
			t.Errorf("%+v, %v", rec, err)
		}
	})
}

// TestSuiteOfThePage wants the suite that docs/eval.md shows to be one that is understood.
func TestSuiteOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/eval.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```toml\n")
	text, _, found := strings.Cut(text, "```")
	file := filepath.Join(t.TempDir(), "suite.toml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil || !found {
		t.Fatalf("%v; an example is there: %v", err, found)
	}
	plan, err := suite.Read(file, settingsForSuite())
	if err != nil {
		t.Fatal(err)
	}
	runs, err := plan.Runs(&suite.Options{})
	if err != nil || len(runs) != 3*3*3 || len(plan.Means) != 1 {
		t.Errorf("%d runs, means %v, %v", len(runs), plan.Means, err)
	}
	for _, name := range suite.PresetNames() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name the preset %s", name)
		}
	}
}

// TestPerceptual measures LPIPS with made-up weights: what a mask leaves out does not count, and the file's hash goes
// into the result.
func TestPerceptual(t *testing.T) {
	needDevice(t)
	device, err := pipeline.OpenDevice(pipeline.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer models.CloseDevice(device)
	w := &metric.LPIPSWeights{Net: "alex"}
	random := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int, scale float32) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = scale * (random.Float32() - 0.4)
		}
		return list
	}
	for _, l := range metric.LPIPSLayers("alex") {
		var kernel, bias, channels []float32
		if !l.Pool {
			kernel, bias = numbers(l.In*l.Side*l.Side*l.Out, 0.1), numbers(l.Out, 0.1)
		}
		if l.Compared {
			channels = make([]float32, l.Out)
			for i := range channels {
				channels[i] = random.Float32()
			}
		}
		w.Kernels, w.Biases, w.Channels = append(w.Kernels, kernel), append(w.Biases, bias),
			append(w.Channels, channels)
	}
	net, err := pipeline.NewLPIPS(device, w, lpips.Options{Normalize: true})
	if err != nil {
		t.Fatal(err)
	}
	p := &evaluate.Perceptual{Net: net, Sha256: "hash"}
	defer p.Close()
	j := &evaluate.Job{Scorer: &evaluate.Scorer{}}
	if err := p.Use(j); err != nil {
		t.Fatal(err)
	}
	const width, height = 64, 48
	shot := scene.Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
	for i := range shot.Pix {
		shot.Pix[i] = uint8(random.Uint32())
	}
	render := photo.FloatRGB(shot)
	score := func(mask []uint32) float64 {
		t.Helper()
		x, err := j.Scorer.Lpips(shot, render, mask)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if x := score(nil); x != 0 || j.Result.Weights != "hash" {
		t.Errorf("a photo and itself: %v, hash %q", x, j.Result.Weights)
	}
	for i := range 3 * width * height / 2 { // the upper half is wrong
		render[i] = 1 - render[i]
	}
	upper, lower := make([]uint32, width*height/32), make([]uint32, width*height/32)
	for i := range upper {
		if i < len(upper)/2 {
			upper[i] = math.MaxUint32
		} else {
			lower[i] = math.MaxUint32
		}
	}
	if all, top, bottom := score(nil), score(upper), score(lower); !(all > 0) || all != top || bottom != 0 {
		t.Errorf("all %v, the half that is wrong %v, the other %v", all, top, bottom)
	}
}

// TestPlanPerceptual refuses before anything is measured where the device has no room for LPIPS, with what is enough.
func TestPlanPerceptual(t *testing.T) {
	needDevice(t)
	device, err := pipeline.OpenDevice(pipeline.DeviceOptions{MaxVRAM: "4M"})
	if err != nil {
		t.Fatal(err)
	}
	defer models.CloseDevice(device)
	file := filepath.Join(t.TempDir(), "a.ply")
	s := scene.NewSplats(10, 0)
	for i := range s.N {
		s.Quats[4*i] = 1
	}
	if err := ply.Write(file, s, ply.Meta{}); err != nil {
		t.Fatal(err)
	}
	j := &evaluate.Job{Name: "out", File: file, Cams: []scene.Camera{{Width: 64, Height: 48}},
		O: evaluate.Options{Protocol: evaluate.ProtocolGsplat}}
	if err := j.PlanPerceptual(device); err != nil {
		t.Errorf("without LPIPS: %v", err)
	}
	j.O.Weights = "alex.safetensors"
	if err := j.PlanPerceptual(device); fault.ExitCode(err) != fault.ExitTryAgain || !strings.Contains(err.Error(),
		"measure out: ") || !strings.Contains(fault.Hint(err), "aise --max-vram to ") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}
