package train

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/results"
	"vksplat/scene/synth"
)

// bentCapture writes a capture whose lens bends straight lines much.
func bentCapture(t *testing.T) string {
	t.Helper()
	runtest.NeedDevice(t)
	dir := filepath.Join(t.TempDir(), "scene")
	lens := &synth.Lens{Model: scene.LensOpenCV, Focal: 0.6, Distortion: []float64{-0.28, 0.07, 0.001, -0.0005}}
	if err := synth.Write(dir, synth.Options{Images: 16, Width: 96, Height: 72, Points: 800, Lens: lens}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// nativeOptions are those of a short run through the lens.
func nativeOptions(dir, out string) *Options {
	o := NewOptions()
	o.Scene, o.Out, o.Eval, o.Progress = dir, out, true, meter.None
	o.Config.Iterations, o.Config.RefineEvery, o.Config.NativeLens = 300, 0, true
	return o
}

// TestNativeLens trains through a lens: the scores of the file are no worse than those of resampled photos, and on the
// photos as taken they are better.
func TestNativeLens(t *testing.T) {
	dir := bentCapture(t)
	plain, taken := map[bool]float64{}, map[bool]float64{}
	for _, native := range []bool{true, false} {
		o := nativeOptions(dir, filepath.Join(t.TempDir(), "out"))
		o.Config.NativeLens = native
		st, err := Do(cli.New(nil, io.Discard, io.Discard), o, nil)
		if err != nil {
			t.Fatal(err, fault.Hint(err))
		}
		plain[native] = st.PSNR
		taken[native] = asTaken(t, o.Out)
	}
	t.Logf("without distortion %.2f and %.2f dB, as taken %.2f and %.2f dB", plain[true], plain[false], taken[true],
		taken[false])
	if plain[true] < plain[false]-0.3 || taken[true] < taken[false] {
		t.Error("training through the lens makes a worse file")
	}
}

// asTaken scores the file of a run against the photos as taken.
func asTaken(t *testing.T, out string) float64 {
	t.Helper()
	o := evaluate.NewOptions()
	o.Models, o.AsTaken = []string{out}, true
	d, err := pipeline.OpenDevice(pipeline.DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := evaluate.One(t.Context(), cli.New(nil, io.Discard, io.Discard), o, d)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	if !strings.HasSuffix(r.Method, "_as_taken") || r.Drawn.Photos != "96x72" {
		t.Errorf("the scores are called %s, of photos of %s", r.Method, r.Drawn.Photos)
	}
	return meanPSNR(r.Views)
}

func meanPSNR(views []results.ViewScores) (sum float64) {
	for _, v := range views {
		sum += v.Scores[0].Value / float64(len(views))
	}
	return sum
}

// TestNativeLensRefused: settings that do not work with it, and lenses that are no polynomials.
func TestNativeLensRefused(t *testing.T) {
	dir := bentCapture(t)
	for name, change := range map[string]func(o *Options){
		"--refine-poses": func(o *Options) { o.Config.RefinePoses = true },
		"--robust":       func(o *Options) { o.Config.Robust = true },
		"depths":         func(o *Options) { o.Depth.Points = true },
	} {
		o := nativeOptions(dir, filepath.Join(t.TempDir(), "out"))
		change(o)
		var told bytes.Buffer
		if _, err := Do(cli.New(nil, io.Discard, &told), o, nil); err == nil || fault.Hint(err) == "" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
