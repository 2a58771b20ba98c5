package train

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
)

// TestFollowCaptureInLittleMemory asks for more splats by the capture than memory has room for: the model ends with
// those that fit, and the run goes on with the same arguments. Where a number is asked for, it is an error.
func TestFollowCaptureInLittleMemory(t *testing.T) {
	capture, out := runtest.SmallScene(t, 300), filepath.Join(t.TempDir(), "out")
	run := func(want string, fails bool, steps int, change func(o *Options)) {
		t.Helper()
		o := NewOptions()
		o.Scene, o.Out, o.Device.MaxVRAM, o.Config.Iterations, o.Progress = capture, out, "24M", steps, meter.Plain
		o.Config.RefineStart, o.Config.RefineEvery, o.Config.RefineStop, o.Config.ResetEvery = 1, 1, 17, 0
		change(o)
		var said bytes.Buffer
		_, err := Do(cli.New(nil, &said, &said), o)
		if err != nil {
			said.WriteString(err.Error())
		}
		if (err != nil) != fails || !strings.Contains(said.String(), want) {
			t.Errorf("%v, no %q in\n%s", err, want, &said)
		}
	}
	run("memory has room for", false, 18, func(o *Options) { o.SplatsFactor = 100 })
	run("resuming", false, 20, func(o *Options) { o.SplatsFactor, o.Checkpoints.Resume = 100, ResumeAuto })
	run("90000 splats to end with", true, 18, func(o *Options) {
		o.Config.Splats, o.Checkpoints.Overwrite = 90000, true
	})
}

// TestFollowTakenPhotos wants as many splats as the pixels that are trained on call for: those of the photos as taken
// where training sees them so, and otherwise those of the photos without distortion.
func TestFollowTakenPhotos(t *testing.T) {
	dir := bentCapture(t)
	given := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t)
	taken, _, err := scene.AsTaken(given.Cameras)
	must.Do(t, err)
	count := func(cams []scene.Camera) int { return recipe.SplatsFor(cams, len(given.Points), 1) }
	if count(taken) == count(given.Cameras) {
		t.Fatal("the capture tells nothing apart")
	}
	for native, want := range map[bool]int{true: count(taken), false: count(given.Cameras)} {
		o := NewOptions()
		o.SplatsFactor, o.Config.NativeLens = 1, native
		if said := must.Get(o.Choose(dir))(t); o.Config.Splats != want {
			t.Errorf("native lens %v: %d splats, want %d: %s", native, o.Config.Splats, want, said)
		}
	}
}

// TestIgnoredPoints wants the first line to say why it has fewer points than the note about the recipe.
func TestIgnoredPoints(t *testing.T) {
	dir := runtest.SmallScene(t, 600)
	c := must.Get(load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel}))(t)
	near := c.Cameras[0].Place(float64(c.Cameras[0].Width)/2, float64(c.Cameras[0].Height)/2, 0.01)
	must.Do(t, colmap.Write(filepath.Join(dir, "sparse", "0"), c.Cameras, append(c.Points, scene.Point{Pos: near})))
	o := NewOptions()
	o.Scene, o.Out, o.Progress, o.Config.Iterations = dir, filepath.Join(t.TempDir(), "out"), meter.Plain, 40
	o.SplatsFactor, o.Config.RefineStart, o.Config.RefineEvery, o.Config.RefineStop = 1, 1, 10, 30
	var said bytes.Buffer
	_, err := Do(cli.New(nil, &said, &said), o)
	must.Do(t, err)
	for _, want := range []string{"64x48 and 601 points: ", " 600 points (1 more ignored), "} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in\n%s", want, &said)
		}
	}
}
