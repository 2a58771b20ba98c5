package train

import (
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// TestSlowText wants a run on a processor that would take hours to name a size of photos that takes minutes, and
// nothing where it takes minutes as it is, or where only a limit helps.
func TestSlowText(t *testing.T) {
	for _, tt := range []struct {
		width, height, downscale, cores int
		want                            string // "": nothing is said
	}{
		{1080, 1920, 0, 2, "take about 7h15m; try --downscale 8, or --time-limit 15m"},
		{540, 960, 0, 2, "take about 1h48m; try --downscale 4, or --time-limit 15m"},
		{270, 480, 2, 2, "take about 27m13s; try --downscale 4, or --time-limit 15m"},
		{270, 480, 8, 2, "take about 27m13s; try --time-limit 15m"},
		{135, 240, 4, 2, ""},
		{540, 960, 0, 64, ""},
	} {
		c := &scene.Capture{Cameras: []scene.Camera{{Width: tt.width, Height: tt.height}}}
		r := NewRun(NewOptions(), &cli.Console{})
		r.Capture, r.training = c, c
		r.Config = recipe.Config{Iterations: 4200}
		r.Load.Downscale = captured.DownscaleFlag(tt.downscale)
		got := r.setup.slowText(tt.cores)
		if (got == "") != (tt.want == "") || !strings.HasSuffix(got, tt.want) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
