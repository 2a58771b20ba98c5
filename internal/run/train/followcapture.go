package train

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/initial"
)

// leastSide is the shorter side in pixels of the smallest photos that a schedule for the capture begins with: those of
// half the size show too little to be worth their steps.
const leastSide = 128

// How FewPhotos raises the penalties: below a share of it, with which most places are seen by a few photos at best,
// more steeply, and so many times at most. bench/README.md has what that brings.
const (
	veryFew     = 0.4
	mostPenalty = 10
)

// followCapture chooses what follows the photos and points that training knows: steps, splats and penalties, and notes
// what it chose. No point was dropped in empty space yet, so that a run that is resumed finds the same numbers.
func (r *Run) followCapture() {
	cams := r.training.Cameras
	r.startLarger(cams)
	said := append(r.followSteps(len(cams)), r.followSplats(cams)...)
	if raised := r.raisePenalties(len(cams)); raised != "" {
		defer r.detailLater(raised)
	}
	if len(said) == 0 {
		return
	}
	what := "recipe"
	if r.adapts {
		what = r.Preset + " recipe"
	}
	r.noteLater(fmt.Sprintf("%s for %s: %s", what, captureText(r.training), strings.Join(said, ", ")))
}

// captureText says by what the numbers of a run were chosen.
func captureText(c *scene.Capture) string {
	return fmt.Sprintf("%s of %s and %s", cli.Count(len(c.Cameras), "photo"), captured.Resolution(c.Cameras),
		cli.Count(len(c.Points), "point"))
}

// followSteps stretches the schedule to IterationsFactor times a power of the number of photos.
func (r *Run) followSteps(photos int) (said []string) {
	if r.IterationsFactor == 0 {
		return nil
	}
	r.stretchSteps(photos, r.StepsScaler)
	return []string{cli.Count(r.Config.Iterations, "step")}
}

// stretchSteps is followSteps with any scaler of steps. A block that is trained for its photos' share of the steps has
// that share of the whole capture's.
func (r *Run) stretchSteps(photos int, scaler float64) {
	c, share := &r.Config, r.stepsShare()
	photos = int(math.Round(float64(photos) / share))
	steps := max(1, math.Round(r.IterationsFactor*recipe.StepsFor(photos)*scaler*share))
	base := *c // once from the schedule as it is written: numbers are rounded down
	if r.unscaled.Iterations > 0 {
		base = r.unscaled
	}
	stretched := base.Scaled(steps / float64(base.Iterations))
	stretched.Iterations = int(steps)
	c.TakeSteps(&stretched, func(name string) bool { return r.changes(stepsFactor, cli.Dashed(name)) })
}

// stepsShare is the share of the steps that a block is trained for; 1 for all others.
func (r *Run) stepsShare() float64 {
	if r.Divided == nil || !r.ShareSteps {
		return 1
	}
	return r.Divided.Share(int(r.Block))
}

// startLarger has a schedule for the capture begin with photos of leastSide or more.
func (r *Run) startLarger(cams []scene.Camera) {
	if r.IterationsFactor == 0 && !r.adapts || !r.changes(stepsFactor, "num-downscales") {
		return
	}
	for _, cam := range cams {
		for r.Config.NumDownscales > 0 && min(cam.Width, cam.Height)>>r.Config.NumDownscales < leastSide {
			r.Config.NumDownscales--
		}
	}
}

// followSplats chooses the number of splats to end with, where no number was asked for and refinements make any.
func (r *Run) followSplats(cams []scene.Camera) (said []string) {
	c := &r.Config
	if r.SplatsFactor == 0 || c.Splats > 0 || c.Refinements() == 0 {
		return nil
	}
	points := len(r.training.Points)
	if r.Init.Kind == initial.InitRandom {
		points = 0 // what is random says nothing of the capture
	}
	r.splatsFor = func(factor float64) int { return recipe.SplatsFor(cams, points, factor) }
	c.Splats = r.splatsFor(r.SplatsFactor)
	if c.MaxSplats > 0 {
		c.Splats = min(c.Splats, c.MaxSplats)
	}
	if c.Strategy == recipe.StrategyMCMC && r.changes(splatsFactor, "max-splats") {
		c.MaxSplats = c.Splats // which it never exceeds: memory for more is better spent on pairs
	}
	if from := r.saver.from; from != nil { // which may have begun with less: see makePlan
		if h := &from.Header; h.Config.Splats > 0 && h.Config.Splats == h.SplatCeiling {
			c.Splats = min(c.Splats, h.SplatCeiling)
		}
	}
	r.follows = true
	return []string{cli.Count(c.Splats, "splat")}
}

// raisePenalties holds down splats that few photos say anything of: their opacity and size are what overfits.
func (r *Run) raisePenalties(photos int) (said string) {
	if photos == 0 || photos >= r.FewPhotos {
		return ""
	}
	var raised []string
	share := float64(photos) / float64(r.FewPhotos)
	times := min(math.Sqrt(1/share)*math.Pow(max(1, veryFew/share), 1.5), mostPenalty)
	for _, p := range []struct {
		name   string
		weight *float64
	}{{"opacity", &r.Config.OpacityReg}, {"scale", &r.Config.ScaleReg}} {
		if *p.weight > 0 && r.changes(fewPhotos, p.name+"-reg") {
			*p.weight *= times
			raised = append(raised, p.name)
		}
	}
	if len(raised) == 0 {
		return ""
	}
	return fmt.Sprintf("few photos: penalties of %s are %.2g times as large", strings.Join(raised, " and "), times)
}

// makePlan plans what memory is used for. Where it has no room for the number of splats that the capture suggests, and
// that nobody asked for, the model ends with as many as there is room for.
func (r *Run) makePlan(cams []scene.Camera, splats int, o pipeline.TrainerOptions) (err error) {
	r.plan, err = r.device.Plan(cams, splats, r.Config, o)
	if !r.follows || !errors.Is(err, pipeline.ErrTooSmall) {
		return err
	}
	one := r.Config
	one.Splats = 1 // which never is too many, and takes what every other number does
	plan, least := r.device.Plan(cams, splats, one, o)
	if least != nil {
		return err
	}
	r.Config.Splats, r.plan = plan.Ceiling, plan
	r.noteLater(fmt.Sprintf("memory has room for %s: the model ends with as many (raise %s, use smaller photos with "+
		"%s, or %s mixed)", cli.Count(plan.Ceiling, "splat"), fault.Setting(r.device.MemorySetting()),
		fault.Setting("downscale"), fault.Setting("precision")))
	return nil
}

// Choose reads the capture in the folder dir and sets what follows it, as a run from the start would, so that a
// configuration that is printed holds the numbers. It says what it chose and why, "" for nothing.
func (o *Options) Choose(dir string) (said string, err error) {
	r := &Run{Options: o}
	r.saver = &saver{r: r}
	o.Scene = dir
	if err := r.loadCapture(); err != nil {
		return "", err
	}
	r.notes = nil // training prints these notes again
	r.followCapture()
	o.Factors = Factors{}
	var texts []string
	for _, n := range r.notes {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, "; "), nil
}
