package train

import (
	"context"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/pipeline/recipe"
	"vksplat/scene/sky"
)

// addSky adds points of a far shell to those that training begins with, where the photos that are trained on show the
// sky. The capture is in the training frame. A block has none: it knows too few of the points that its photos show.
func (r *Run) addSky(ctx context.Context) error {
	if from := r.saver.from; from != nil {
		r.shell = from.Header.Shell
		return nil
	}
	if !r.Config.Sky || r.Config.Strategy != recipe.StrategyMCMC || !r.beginsAtPoints() || r.Divided != nil ||
		len(r.training.Points) == 0 {
		return nil
	}
	found, err := sky.Find(ctx, r.training, r.device.RAM()/2)
	if err != nil {
		return err
	}
	if len(found.Points) == 0 {
		if r.Asked("sky") {
			r.noteLater("no sky is found: nowhere do photos show the same without points of the capture")
		}
		return nil
	}
	r.shell = found.Radius
	r.training.Points = append(r.training.Points, found.Points...)
	r.noteLater(fmt.Sprintf("training begins with %s of a far shell, too, where photos show the sky",
		cli.Count(len(found.Points), "point")))
	return nil
}
