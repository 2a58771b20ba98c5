package train

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/synth"
)

// wrongPoses makes the poses of a capture wrong by about three degrees, and returns its cameras.
func wrongPoses(t *testing.T, dir string) []scene.Camera {
	t.Helper()
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Downscale: 1}))(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		center := cam.Center()
		sin, cos := math.Sincos(0.05 * (2*r.Float64() - 1))
		for k, at := range [3][2]int{{0, 1}, {1, 2}, {2, 0}} {
			if k == i%3 {
				turn := geom.Identity
				turn[4*at[0]], turn[4*at[1]], turn[3*at[0]+at[1]], turn[3*at[1]+at[0]] = cos, cos, -sin, sin
				cam.R = geom.Product(turn, cam.R)
			}
		}
		cam.T = geom.TranslationOf(cam.R, center)
	}
	must.Do(t, colmap.Write(filepath.Join(dir, "sparse", "0"), c.Cameras, c.Points))
	return c.Cameras
}

// TestRefineCameras: poses of photos are wrong, and training moves them: cameras.json and the COLMAP model have them
// where they go with the splats, held-out photos have scores with aligned cameras, and the user is told. Without
// --refine-cameras there is nothing of that.
func TestRefineCameras(t *testing.T) {
	dir := runtest.SmallScene(t, 600)
	wrongPoses(t, dir)
	written := map[bool]string{}
	for _, refines := range []bool{false, true} {
		o := NewOptions()
		o.Scene, o.Out, o.Eval, o.Progress, o.Config.Iterations = dir, filepath.Join(t.TempDir(), "out"), true,
			meter.None, 120
		o.Config.RefineEvery, o.Config.SHDegree = 0, 0
		// so few photos say little, after so few steps
		o.Config.RefineCameras, o.Config.PoseGain, o.Config.PoseStart = refines, -0.5, 40
		var told bytes.Buffer
		st := must.Get(Do(cli.New(nil, &told, &told), o))(t)
		if strings.Contains(told.String(), "changes nothing") {
			t.Errorf("refine-cameras %v: %s", refines, &told)
		}
		for _, text := range []string{"they are refined", "aligned, which is with cameras moved to where their photos fit best"} {
			if strings.Contains(told.String(), text) != refines {
				t.Errorf("refine-cameras %v: %q in %q", refines, text, &told)
			}
		}
		if (st.AlignedPSNR != nil) != refines || refines && *st.AlignedPSNR < st.PSNR {
			t.Fatalf("refine-cameras %v: PSNR %v, aligned %v", refines, st.PSNR, st.AlignedPSNR)
		}
		for file, word := range map[string]string{"results.json": "aligned_psnr", "per_view.json": "aligned_ssim",
			"metrics.jsonl": "aligned_psnr", "stats.json": "aligned_psnr", output.ReportFile: "PSNR aligned"} {
			data, err := os.ReadFile(filepath.Join(o.Out, file))
			if err != nil || strings.Contains(string(data), word) != refines {
				t.Errorf("refine-cameras %v: %s, error %v", refines, file, err)
			}
		}
		data := must.Get(os.ReadFile(filepath.Join(o.Out, "cameras.json")))(t)
		written[refines] = string(data)
		if model := filepath.Join(o.Out, captured.ModelFolder, "images.bin"); output.IsFile(model) != refines {
			t.Errorf("refine-cameras %v: %s", refines, model)
		}
	}
	if written[false] == written[true] {
		t.Error("cameras.json has the given poses")
	}
}

// TestRefineMoving refines cameras that moved while they took their photos as if they had stood still.
func TestRefineMoving(t *testing.T) {
	runtest.NeedDevice(t)
	o := nativeOptions(written(t, synth.Options{Images: 10, Width: 64, Height: 48, Points: 200, Shutter: 0.15}),
		filepath.Join(t.TempDir(), "out"), false)
	o.Config.RefineCameras = true
	o.Config.Iterations, o.Config.PoseGain, o.Config.PoseStart = 6, -1, 2
	var log bytes.Buffer
	if _, err := Do(cli.New(nil, io.Discard, &log), o); err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	if !strings.Contains(log.String(), "photos moved while their rows were read out, which is ignored") {
		t.Error(&log)
	}
}

// TestRefinedBytes wants the plan to count what it takes to read the capture again with refined cameras.
func TestRefinedBytes(t *testing.T) {
	dir := runtest.SmallScene(t, 5000)
	process := map[bool]int64{}
	for _, refines := range []bool{false, true} {
		o := NewOptions()
		o.Scene, o.Out, o.Progress, o.Config.RefineCameras = dir, filepath.Join(t.TempDir(), "out"), meter.None, refines
		r := NewRun(o, cli.New(nil, io.Discard, io.Discard))
		must.Do(t, r.Begin(t.Context()))
		process[refines] = r.plan.Host.Process
		must.Do(t, r.Close())
	}
	if more := process[true] - process[false]; more < 5000*(250+loadedPointBytes) {
		t.Errorf("the plan counts %d bytes", more)
	}
}

// TestRefuseCameras refuses what cameras are not refined with, with what to do.
func TestRefuseCameras(t *testing.T) {
	r := NewRun(NewOptions(), cli.New(nil, io.Discard, io.Discard))
	cams, devices := []scene.Camera{{Name: "a"}}, 1
	judged := func() error { return firstOf(refineRules(r.Options, cams, devices)) }
	r.Config.RefineCameras = true
	if err := judged(); err != nil {
		t.Error(err)
	}
	devices = 2
	if err := judged(); err == nil || !strings.Contains(err.Error(), "one device alone, 2 were given") ||
		!strings.Contains(fault.Hint(err), "give one device") {
		t.Error(err)
	}
	devices, cams[0].Photo = 1, "wide.jpg"
	if err := judged(); err == nil || !strings.Contains(err.Error(), "panorama wide.jpg") {
		t.Error(err)
	}
	cams[0].Photo = ""
	for _, refused := range []struct {
		set  func(r *Run)
		word string
	}{
		{func(r *Run) { r.TimeLimit = LimitFlag(time.Minute) }, "time-limit"},
		{func(r *Run) { r.TimeLimit, r.Config.PoseStart = 0, r.Config.Iterations }, "training ends with"},
	} {
		refused.set(r)
		if err := judged(); err == nil || !strings.Contains(err.Error(), refused.word) {
			t.Errorf("%s: %v", refused.word, err)
		}
	}
	r.Config.RefineCameras = false
	if err := judged(); err != nil {
		t.Error(err)
	}
}

// TestAnchorsInFingerprint wants other anchors to give another fingerprint.
func TestAnchorsInFingerprint(t *testing.T) {
	a := [][]scene.Anchor{{{Point: [3]float64{1, 2, 3}, X: 4, Y: 5}}, nil}
	b := [][]scene.Anchor{{{Point: [3]float64{1, 2, 3}, X: 4, Y: 6}}, nil}
	c := [][]scene.Anchor{nil, a[0]}
	seen := map[string]bool{(&knowns{}).fingerprint([32]byte{1}): true}
	for _, anchors := range [][][]scene.Anchor{a, b, c} {
		seen[(&knowns{anchorHash: hashLists(anchors, appendAnchor)}).fingerprint([32]byte{1})] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d fingerprints of 4 captures", len(seen))
	}
}
