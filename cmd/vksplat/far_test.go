package main

import (
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/demo"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
	"vksplat/scene"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
	"vksplat/scene/synth"
)

// vksplat runs one command line and fails the test unless it succeeds. It is a
// process of its own: a child's peak memory, which scripts look at, counts that
// of the process which started it.
func vksplat(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("vksplat", args...).CombinedOutput(); err != nil {
		t.Fatalf("vksplat %q: %v\n%s", args, err, out)
	}
}

// What tests of the application layer have, too.
var (
	smallScene = runtest.SmallScene
	needDevice = runtest.NeedDevice
	apart      = runtest.Apart
)

// trainedStats trains a capture and returns its stats.json.
func trainedStats(t *testing.T, capture, out, steps string) (st output.Stats) {
	t.Helper()
	vksplat(t, "train", capture, "-m", out, "--eval", "--max-splats", "5000", "--iterations", steps)
	filetest.ReadJSON(t, filepath.Join(out, "stats.json"), &st)
	return st
}

// TestFarCapture trains a capture and the same one a thousand times larger and
// far from the origin: quality must not depend on where a capture is.
func TestFarCapture(t *testing.T) {
	needDevice(t)
	o, steps := synth.Options{Images: 12, Width: 64, Height: 48, Points: 400}, "40"
	if filetest.Long() {
		o, steps = synth.Options{Images: demo.Photos, Width: demo.Width, Height: demo.Height, Points: demo.Points},
			"1200"
	}
	dir := t.TempDir()
	near, far := filepath.Join(dir, "near"), filepath.Join(dir, "far")
	must.Do(t, synth.Write(near, o))
	o.Scale, o.Offset = 1000, [3]float64{5e6, -5e6, 5e6}
	must.Do(t, synth.Write(far, o))
	a := trainedStats(t, near, filepath.Join(dir, "a"), steps)
	b := trainedStats(t, far, filepath.Join(dir, "b"), steps)
	t.Logf("PSNR %.3f dB near, %.3f dB far", a.PSNR, b.PSNR)
	if math.Abs(a.PSNR-b.PSNR) > 0.1 {
		t.Errorf("PSNR %.3f dB near the origin, %.3f dB far from it", a.PSNR, b.PSNR)
	}
	checkFarRender(t, dir, steps, scene.Camera{Width: o.Width, Height: o.Height})
	for capture, warned := range map[string]bool{near: false, far: true} {
		out, err := exec.Command("vksplat", "train", capture, "-m", filepath.Join(dir, "kept"), "--overwrite",
			"--origin", "keep", "--iterations", "5").CombinedOutput()
		if err != nil || strings.Contains(string(out), "--origin keep writes") != warned {
			t.Errorf("%s: train --origin keep: %v\n%s", capture, err, out)
		}
	}
}

// checkFarRender renders the far model from the capture and from cameras.json,
// which have different origins, in pictures of the given size: they must be the same.
func checkFarRender(t *testing.T, dir, steps string, size scene.Camera) {
	t.Helper()
	model := filepath.Join(dir, "b", "point_cloud", "iteration_"+steps, "point_cloud.ply")
	if _, info, err := ply.Read(model); err != nil || info.Meta.Origin == nil {
		t.Fatalf("the far model records no origin (error %v)", err)
	}
	vksplat(t, "render", model, "--cameras", filepath.Join(dir, "far"), "-o", filepath.Join(dir, "c"))
	vksplat(t, "render", model, "--cameras", filepath.Join(dir, "b", "cameras.json"), "-o", filepath.Join(dir, "d"))
	photos, err := filepath.Glob(filepath.Join(dir, "c", "*.png"))
	if err != nil || len(photos) == 0 {
		t.Fatalf("no pictures (error %v)", err)
	}
	for _, p := range photos {
		psnr, err := agreement(size, p, filepath.Join(dir, "d", filepath.Base(p)))
		if err != nil || psnr < 60 {
			t.Errorf("%s: the two renders agree to %.1f dB only (error %v)", filepath.Base(p), psnr, err)
		}
	}
}

// agreement returns the PSNR between two pictures of the given size.
func agreement(size scene.Camera, a, b string) (float64, error) {
	size.Path = a
	first, err := photo.Decode(size)
	if err != nil {
		return 0, err
	}
	size.Path = b
	second, err := photo.Decode(size)
	if err != nil {
		return 0, err
	}
	psnr, _, err := metric.Compare(first, photo.FloatRGB(second), metric.PaddingSame, nil)
	return psnr, err
}
