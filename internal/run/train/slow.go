package train

import (
	"fmt"
	"runtime"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/pipeline/recipe"
	"vksplat/scene/photo"
)

// What a run says before it begins where its device is too slow for what was asked. It changes nothing by itself.

const (
	roughShare = 0.1 // of the recipe's steps: a time limit that allows fewer is worth a warning
	roughSide  = 64  // the shorter side in pixels of the smallest photos that are proposed
	// What a pixel of a step takes a core, in seconds: about what bench/README.md has under "A time limit".
	pixelSeconds = 6e-6
	fewMinutes   = 15 * 60 // seconds that a run on a processor may take without a word
)

// smallerPhotos is by how much --downscale should shrink photos: the least factor that is enough for the share of
// pixels that is left, or the largest one that leaves something to see; 0 where photos are as small already.
func (s *setup) smallerPhotos(enough func(pixels float64) bool) (factor int) {
	cams := s.Capture.Cameras
	now, side := max(1, float64(s.Load.Downscale)), shorterSide(cams)
	if width, _, err := photo.Size(cams[0].Path); err == nil {
		now = max(now, float64(width)/float64(cams[0].Width)) // where wide photos are reduced unasked
	}
	for f := 2; f <= 8; f *= 2 {
		share := now / float64(f)
		if share >= 1 {
			continue
		}
		if share*float64(side) < roughSide {
			break
		}
		if factor = f; enough(share * share) {
			break
		}
	}
	return factor
}

// warnRough says that the steps that fit into the time limit make a rough model, and what would help. step is what one
// of them takes in seconds.
func (lim *limiter) warnRough(h *rehearsal, full *recipe.Config, step float64) {
	remedy := "a longer limit"
	if n := lim.smallerPhotos(func(pixels float64) bool {
		return step*pixels*roughShare*float64(full.Iterations) < h.left(full)
	}); n > 0 {
		remedy = fmt.Sprintf("%s %d or %s", fault.Setting("downscale"), n, remedy)
	}
	lim.warnLater(fmt.Sprintf("time limit %s: only about %d of the recipe's %s fit on this device (%s): expect a rough "+
		"model; try %s (all steps take about %s)", lim.TimeLimit.text(), lim.Config.Iterations,
		cli.Count(full.Iterations, "step"), meter.RateText(1/step), remedy, cli.Duration(h.seconds(full))))
}

// noteSlow says once of a run on a processor that would take hours at which size of photos it takes minutes.
func (s *setup) noteSlow() {
	if !s.device.OnCPU() || s.TimeLimit > 0 || s.DryRun || s.prev.from != nil || s.prev.begun != nil {
		return
	}
	if text := s.slowText(runtime.NumCPU()); text != "" {
		s.noteLater(text)
	}
}

// slowText is that note for a number of cores, "" where the run takes minutes as it is.
func (s *setup) slowText(cores int) string {
	c, cams, seconds := &s.Config, s.training.Cameras, 0.0
	for i := range scheduleSamples {
		cam := &cams[i%len(cams)]
		level := c.Level(i * c.Iterations / scheduleSamples)
		seconds += pixelSeconds / float64(cores) * float64(cam.Width*cam.Height>>(2*level))
	}
	seconds *= float64(c.Iterations) / scheduleSamples
	if seconds <= fewMinutes {
		return ""
	}
	remedy := fault.Setting("time-limit") + " 15m"
	if n := s.smallerPhotos(func(pixels float64) bool { return seconds*pixels <= fewMinutes }); n > 0 {
		remedy = fmt.Sprintf("%s %d, or %s", fault.Setting("downscale"), n, remedy)
	}
	return fmt.Sprintf("this device is a processor: %s on photos of %s take about %s; try %s",
		cli.Count(c.Iterations, "step"), captured.Resolution(cams), cli.Duration(seconds), remedy)
}
