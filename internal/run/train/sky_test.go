package train

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline/recipe"
	"vksplat/scene/synth"
	"vksplat/scene/synth/synthtest"
)

// TestAddSky: training begins with the points of the capture and those of a far shell, which the plan counts. Nothing
// is added under a dome.
func TestAddSky(t *testing.T) {
	runtest.NeedDevice(t)
	scenes := map[bool]string{}
	for _, open := range []bool{false, true} {
		scenes[open] = t.TempDir()
		must.Do(t, synthtest.Write(scenes[open], synth.Options{Images: 48, Width: 64, Height: 48, Points: 1500,
			Open: open}))
	}
	for _, x := range []struct {
		open, sky bool
		strategy  string
		found     bool
	}{
		{true, true, recipe.StrategyMCMC, true},
		{true, false, recipe.StrategyMCMC, false},
		{true, true, recipe.Strategy3DGS, false},
		{false, true, recipe.StrategyMCMC, false},
	} {
		o := NewOptions()
		o.Scene, o.Out, o.Progress, o.Report = scenes[x.open], filepath.Join(t.TempDir(), "out"), meter.None, false
		o.Config.Sky, o.Config.Strategy, o.Config.RefineEvery = x.sky, x.strategy, 0
		var told bytes.Buffer
		r := NewRun(o, cli.New(nil, io.Discard, &told))
		must.Do(t, r.Begin(t.Context()))
		r.FlushNotes()
		points, splats := r.nPoints, r.plan.Splats
		must.Do(t, r.Close())
		said := strings.Contains(told.String(), "far shell")
		if added := splats - points; (added > 200) != x.found || !x.found && added != 0 || said != x.found ||
			(r.shell > 0) != x.found {
			t.Errorf("%+v: %d points, %d splats, a shell of %g, told %q", x, points, splats, r.shell, &told)
		}
	}
}

// TestSkyResumed: a run that is resumed looks for no sky, and ends with the model of the undisturbed run.
func TestSkyResumed(t *testing.T) {
	runtest.NeedDevice(t)
	capture, dir := t.TempDir(), t.TempDir()
	must.Do(t, synthtest.Write(capture, synth.Options{Images: 48, Width: 64, Height: 48, Points: 1500,
		Open: true}))
	trained := func(name, from string) (model []byte, told string) {
		o := NewOptions()
		o.Scene, o.Out, o.Progress, o.Report = capture, filepath.Join(dir, name), meter.None, false
		o.Config.Sky, o.Config.Strategy, o.Config.RefineEvery, o.Config.Iterations = true, recipe.StrategyMCMC, 0, 12
		o.Config.NoiseLR, o.Config.ScaleReg = recipe.MCMC().NoiseLR, recipe.MCMC().ScaleReg
		o.Checkpoints.SaveAt, o.Checkpoints.Keep, o.Checkpoints.Resume = cli.Steps{6}, 5, from
		var text bytes.Buffer
		must.Get(Do(cli.New(nil, io.Discard, &text), o))(t)
		model = must.Get(os.ReadFile(filepath.Join(o.Out, "point_cloud", "iteration_12", output.ModelName)))(t)
		return model, text.String()
	}
	want, told := trained("whole", "")
	if !strings.Contains(told, "far shell") {
		t.Fatalf("there is no far shell: %q", told)
	}
	got, told := trained("resumed", filepath.Join(dir, "whole", output.CheckpointFolder, "step_6.safetensors"))
	if !bytes.Equal(got, want) || strings.Contains(told, "far shell") {
		t.Errorf("resumed, it ends with other bytes: %v; told %q", !bytes.Equal(got, want), told)
	}
}
