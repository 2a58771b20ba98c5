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
func (d *dataset) addSky(ctx context.Context, ram int64) error {
	if !d.Config.Sky || d.Config.Strategy != recipe.StrategyMCMC || !startsAtPoints(d.Options) || d.Divided != nil ||
		len(d.training.Points) == 0 {
		return nil
	}
	found, err := sky.Find(ctx, d.training, ram/2)
	if err != nil {
		return err
	}
	if len(found.Points) == 0 {
		if d.Asked("sky") {
			d.noteLater("no sky is found: photos agree nowhere that the capture has no points")
		}
		return nil
	}
	d.shell = found.Radius
	d.training.Points = append(d.training.Points, found.Points...)
	d.noteLater(fmt.Sprintf("training also starts with %s on a far shell, where photos show the sky",
		cli.Count(len(found.Points), "point")))
	return nil
}
