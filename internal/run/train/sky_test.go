package train

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline/recipe"
	"vksplat/scene/synth"
)

// TestAddSky: training begins with the points of the capture and those of a far shell, which the plan counts. Nothing
// is added under a dome.
func TestAddSky(t *testing.T) {
	runtest.NeedDevice(t)
	scenes := map[bool]string{}
	for _, open := range []bool{false, true} {
		scenes[open] = t.TempDir()
		if err := synth.Write(scenes[open], synth.Options{Images: 48, Width: 64, Height: 48, Points: 1500,
			Open: open}); err != nil {
			t.Fatal(err)
		}
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
		r := &Run{Options: o, Console: cli.New(nil, io.Discard, &told)}
		if err := r.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.FlushNotes()
		points, splats := r.nPoints, r.plan.Splats
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(told.String(), "far shell")
		if added := splats - points; (added > 200) != x.found || !x.found && added != 0 || said != x.found ||
			(r.shell > 0) != x.found {
			t.Errorf("%+v: %d points, %d splats, a shell of %g, told %q", x, points, splats, r.shell, &told)
		}
	}
}
