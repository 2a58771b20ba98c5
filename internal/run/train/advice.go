package train

import (
	"fmt"
	"strconv"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/scene"
)

// A run that will take longer than adviceSeconds gets a faster command as advice, once, after adviceAfter steps.
const (
	adviceAfter   = 200
	adviceSeconds = 3600
)

// advise prints how the run could take less than an hour, if it will take more.
// It changes nothing: the user decides.
func (p *progress) advise(m *meter.Meter) {
	eta := m.EtaSeconds()
	if !(eta > adviceSeconds) {
		return
	}
	text := p.o.Advice(p.started.Capture, m.Rate)
	p.console.Note(fmt.Sprintf("%s to go at %s, more when the model grows; to be faster, stop this and give: %s",
		cli.Duration(eta), meter.RateText(m.Rate), text))
}

// Advice is the same run with smaller photos, where they are large, and with
// as few steps as fit into most of an hour at a rate of steps per second.
func (o *Options) Advice(c *scene.Capture, rate float64) string {
	var changes []Change
	largest := 0
	for _, c := range c.Cameras {
		largest = max(largest, c.Width)
	}
	if next := smallerPhotos(o.Load.Downscale, largest); next != "" {
		changes = append(changes, Change{Setting: "downscale", Value: next})
		// A step's time goes with the pixels, but for what the splats take; half of
		// the gain is counted on.
		rate *= 2
	}
	share := 0.8 * adviceSeconds * rate / float64(o.Config.Iterations)
	for _, f := range []float64{1, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01} {
		if f <= share || f == 0.01 {
			if f < 1 {
				changes = append(changes, Change{Setting: "steps-scaler", Value: fmt.Sprintf("%.3g", f*o.StepsScaler)})
			}
			break
		}
	}
	return o.Again(changes...)
}

// adviceWidth is the width in pixels above which smaller photos are advised.
const adviceWidth = 1000

// smallerPhotos is the factor that halves the photos once more, or "" when they are small
// or none is left. Auto is known by the width that it brings photos to.
func smallerPhotos(f captured.DownscaleFlag, width int) string {
	if next := 2 * max(1, int(f)); width > adviceWidth && next <= 8 {
		return strconv.Itoa(next)
	}
	return ""
}
