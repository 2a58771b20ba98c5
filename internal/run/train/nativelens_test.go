package train

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/results"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// bentCapture writes a capture whose lens bends straight lines much.
func bentCapture(t *testing.T) string {
	t.Helper()
	runtest.NeedDevice(t)
	return captureThrough(t, &synth.Lens{Model: scene.LensOpenCV, Focal: 0.6,
		Distortion: []float64{-0.28, 0.07, 0.001, -0.0005}})
}

// captureThrough writes a capture of a lens.
func captureThrough(t *testing.T, lens *synth.Lens) string {
	t.Helper()
	return written(t, synth.Options{Images: 16, Width: 96, Height: 72, Points: 800, Lens: lens})
}

func written(t *testing.T, o synth.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "scene")
	must.Do(t, synthtest.Write(dir, o))
	return dir
}

// nativeOptions are those of a short run on photos as taken, or on undistorted ones.
func nativeOptions(dir, out string, native bool) *Options {
	o := NewOptions()
	o.Scene, o.Out, o.Eval, o.Progress = dir, out, true, meter.None
	o.Config.Iterations, o.Config.RefineEvery = 200, 0
	if !native {
		o.Load.Cameras = captured.CamerasGiven
	}
	return o
}

// TestNativeLens trains on photos of a lens that distorts, as taken, which is the default, and undistorted, as other
// trainers do: the scores of undistorted photos are no worse, and those of photos as taken are better.
func TestNativeLens(t *testing.T) {
	dir := bentCapture(t)
	plain, taken := map[bool]float64{}, map[bool]float64{}
	for _, native := range []bool{true, false} {
		o := nativeOptions(dir, filepath.Join(t.TempDir(), "out"), native)
		st, err := Do(cli.New(nil, io.Discard, io.Discard), o)
		if err != nil {
			t.Fatal(err, fault.Hint(err))
		}
		plain[native] = scored(t, o.Out, evaluate.SplitTest, native, false)
		taken[native] = scored(t, o.Out, evaluate.SplitTest, native, true)
		trained := plain[native]
		if native {
			trained = taken[native]
		}
		if math.Abs(st.PSNR-trained) > 1e-3 {
			t.Errorf("as taken %v: train's score is %g dB, eval's of the same pixels %g", native, st.PSNR, trained)
		}
	}
	t.Logf("without distortion %.2f and %.2f dB, as taken %.2f and %.2f dB", plain[true], plain[false], taken[true],
		taken[false])
	if plain[true] < plain[false]-0.3 || taken[true] < taken[false] {
		t.Error("training through the lens makes a worse file")
	}
}

// scored scores the file of a run, which trained on photos as taken or not, against the photos of a split, as taken or
// undistorted.
func scored(t *testing.T, out, split string, native, taken bool) float64 {
	t.Helper()
	o := evaluate.NewOptions()
	o.Models, o.AsTaken, o.Split = []string{out}, taken, split
	o.Given = func(flag string) bool { return flag == "native-lens" }
	d, err := pipeline.OpenDevice(pipeline.DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := evaluate.One(t.Context(), cli.New(nil, io.Discard, io.Discard), o, d)
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	name := map[[2]bool]string{{true, false}: "_undistorted", {false, true}: "_as_taken"}[[2]bool{native, taken}]
	if plain := strings.TrimSuffix(r.Method, name); strings.Count(strings.TrimSuffix(plain, "_train"), "_") != 1 ||
		taken && !strings.Contains("96x72 64x48", r.Drawn.Photos) {
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

// TestRollingShutter trains on photos of cameras that moved: the file is better on held-out photos of cameras that
// stood still than one of a training that ignores it, which a warning tells, and through the rolling shutter it is
// better on the photos that were trained on, too.
func TestRollingShutter(t *testing.T) {
	runtest.NeedDevice(t)
	dir := written(t, synth.Options{Images: 24, Width: 64, Height: 48, Points: 800, Shutter: 0.15})
	still, taken, told := map[bool]float64{}, map[bool]float64{}, map[bool]string{}
	for _, native := range []bool{true, false} {
		o := nativeOptions(dir, filepath.Join(t.TempDir(), "out"), native)
		o.Config.Iterations = 300
		var log bytes.Buffer
		st, err := Do(cli.New(nil, io.Discard, &log), o)
		if err != nil {
			t.Fatal(err, fault.Hint(err))
		}
		still[native], told[native] = st.PSNR, log.String()
		taken[native] = scored(t, o.Out, evaluate.SplitTrain, native, true)
	}
	t.Logf("of still cameras %.2f and %.2f dB, as taken %.2f and %.2f dB", still[true], still[false], taken[true],
		taken[false])
	if still[true] < still[false]+0.6 || taken[true] < taken[false]+0.6 {
		t.Error("training through the rolling shutter makes no better file")
	}
	if want := "the cameras of 21 of 21 photos moved"; !strings.Contains(told[false], want) ||
		!strings.Contains(told[false], "native-lens") || strings.Contains(told[true], want) ||
		!strings.Contains(told[true], "21 through a rolling shutter") {
		t.Errorf("with the setting:\n%s\nwithout:\n%s", told[true], told[false])
	}
}

// TestNativeLensRefused: settings that do not work with it.
func TestNativeLensRefused(t *testing.T) {
	dir := bentCapture(t)
	for name, change := range map[string]func(o *Options){
		"--robust": func(o *Options) { o.Config.Robust = true },
		"depths":   func(o *Options) { o.Depth.Points = true },
		"normals":  func(o *Options) { o.Normal.Maps = normalMaps(t, dir, "normals", 0) },
	} {
		o := nativeOptions(dir, filepath.Join(t.TempDir(), "out"), true)
		o.Config.NativeLens = true
		change(o)
		var told bytes.Buffer
		if _, err := Do(cli.New(nil, io.Discard, &told), o); err == nil || fault.Hint(err) == "" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestNativeLensNoPolynomial: a lens that kernels have no formula of is refused where photos as taken are asked for.
func TestNativeLensNoPolynomial(t *testing.T) {
	runtest.NeedDevice(t)
	dir := captureThrough(t, &synth.Lens{Model: scene.LensFOV, Focal: 0.6, Distortion: []float64{0.9}})
	o := nativeOptions(dir, filepath.Join(t.TempDir(), "out"), true)
	o.Config.NativeLens = true
	_, err := Do(cli.New(nil, io.Discard, io.Discard), o)
	if err == nil || !strings.Contains(err.Error(), "FOV is not a polynomial") ||
		!strings.Contains(fault.Hint(err), "leave out --native-lens") {
		t.Errorf("error %v, hint %q", err, fault.Hint(err))
	}
	o = nativeOptions(dir, filepath.Join(t.TempDir(), "out"), true) // unless it is asked for, photos are undistorted
	o.Config.Iterations = 1
	if _, err := Do(cli.New(nil, io.Discard, io.Discard), o); err != nil {
		t.Error(err, fault.Hint(err))
	}
}

// TestNativeLensDevices: several devices are refused, with what to do.
func TestNativeLensDevices(t *testing.T) {
	r := NewRun(NewOptions(), cli.New(nil, io.Discard, io.Discard))
	r.Capture, r.training = &scene.Capture{}, &scene.Capture{}
	r.Config.NativeLens = true
	if _, err := r.trainedCameras(1); err != nil {
		t.Error(err)
	}
	if _, err := r.trainedCameras(2); err == nil || !strings.Contains(err.Error(), "one device alone: 2 were given") ||
		!strings.Contains(fault.Hint(err), "give one device") {
		t.Errorf("error %v, hint %q", err, fault.Hint(err))
	}
}

// TestNativeLensDecodes: photos that are trained on are decoded as taken, and memory is planned for that; the others
// are decoded without distortion.
func TestNativeLensDecodes(t *testing.T) {
	calibration := scene.Calibration{Model: scene.LensOpenCV, Width: 96, Height: 72,
		Params: []float64{58, 58, 48, 36, -0.28, 0.07, 0.001, -0.0005}}
	views := must.Get(calibration.Views(scene.Camera{Name: "photo", R: geom.Identity}, 96, 72, 1))(t)
	r := NewRun(NewOptions(), cli.New(nil, io.Discard, io.Discard))
	r.Capture = &scene.Capture{Cameras: []scene.Camera{views[0], views[0], views[0]}}
	r.Config.NativeLens, r.Train, r.Test = true, []int{0, 2}, []int{1}
	r.training = &scene.Capture{Cameras: r.Capture.Cameras[:2]}
	trained := must.Get(r.trainedCameras(1))(t)
	for i, c := range r.decodedCameras(trained) {
		if taken := i != 1; (c.Distortion != nil) != taken || taken && (c.Width != 96 || c.Height != 72) {
			t.Errorf("photo %d is decoded as %d x %d, distortion %v", i, c.Width, c.Height, c.Distortion)
		}
		if r.Capture.Cameras[i].Distortion != nil {
			t.Errorf("the capture's camera %d was changed", i)
		}
	}
}
