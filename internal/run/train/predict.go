package train

import (
	"context"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// prediction is a rehearsal's estimate of the whole recipe on this device.
type prediction struct {
	Steps   int           `json:"steps"`
	Seconds meter.Rounded `json:"seconds"` // of all steps, and of what comes beside them
	Fit     int           `json:"fit"`     // steps that fit into the time limit
	least   float64       // seconds that a run of one step takes
}

// predict rehearses a dry run that has a time limit. Nothing is left of it but the times.
func (lim *limiter) predict(ctx context.Context, cams []scene.Camera, init *scene.Splats,
	o pipeline.TrainerOptions) error {
	if lim.TimeLimit == 0 {
		return nil
	}
	if err := lim.openPhotos(ctx, cams); err != nil {
		return err
	}
	h := &rehearsal{r: lim, cams: cams, init: init, options: o}
	c, err := lim.choose(ctx, h)
	if err != nil {
		return err
	}
	lim.predicted = &prediction{Steps: lim.Config.Iterations, Seconds: meter.Rounded(h.seconds(&lim.Config)),
		Fit:   c.fit,
		least: c.least}
	return nil
}

// seconds are those of all steps of a recipe, and of what comes beside them.
func (h *rehearsal) seconds(cfg *recipe.Config) float64 {
	return h.times.schedule(cfg, h.growth) + h.made + (h.besides.onTheWay() + h.besides.end()).Seconds()
}

// text says it for people.
func (p *prediction) text(limit LimitFlag) string {
	fits := fmt.Sprintf("%d fit into %s", p.Fit, limit.text())
	if p.Fit == 0 {
		fits = noStep(limit, p.least)
	}
	return fmt.Sprintf("about %s for %s, by a rehearsal; %s", cli.Duration(float64(p.Seconds)),
		cli.Count(p.Steps, "step"), fits)
}

// planJSON is the plan for programs.
type planJSON struct {
	*pipeline.Plan
	Prediction *prediction `json:"prediction,omitempty"` // with a time limit
	Resume     *resumption `json:"resume,omitempty"`     // of a run that is resumed
}
