package train

import (
	"errors"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/initial"
)

// SplatsFactors are the values of SplatsFactor. The largest gives more splats than any photo has pixels.
var SplatsFactors = recipe.Range{Most: 100}

// followCapture chooses the number of splats to end with by what the capture holds, where --splats-factor asks for that
// and --splats does not say it. Both the photos and the points are those of the capture as it was read, so that a run
// that is resumed finds the same number.
func (r *Run) followCapture() {
	c := &r.Config
	if r.SplatsFactor == 0 || c.Splats > 0 || c.RefineEvery == 0 {
		return
	}
	every := 0
	if r.Eval {
		every = r.TestEvery
	}
	train, _ := r.Capture.Split(every)
	points := len(r.Capture.Points)
	if r.Init.Kind == initial.InitRandom {
		points = 0 // what is random says nothing of the capture
	}
	c.Splats = recipe.SplatsFor(captured.Pick(r.Capture.Cameras, train), points, r.SplatsFactor)
	if c.MaxSplats > 0 {
		c.Splats = min(c.Splats, c.MaxSplats)
	}
	if from := r.saver.from; from != nil { // which may have begun with less: see makePlan
		if h := &from.Header; h.Config.Splats > 0 && h.Config.Splats == h.SplatCeiling {
			c.Splats = min(c.Splats, h.SplatCeiling)
		}
	}
	r.follows = true
	r.noteLater(fmt.Sprintf("the model ends with %s: %s %g of this capture", cli.Count(c.Splats, "splat"),
		fault.Setting("splats-factor"), r.SplatsFactor))
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
