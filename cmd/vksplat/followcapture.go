package main

import (
	"fmt"

	"vksplat/pipeline"
	"vksplat/scene"
)

// mostSplatsFactor gives more splats than any photo has pixels.
const mostSplatsFactor = 100

// followCapture chooses the number of splats to end with by what the capture holds, where --splats-factor asks for that and --splats does not say it. Both
// the photos and the points are those of the capture as it was read, so that a run that is resumed finds the same number.
func (r *trainRun) followCapture() {
	c := &r.config
	if r.splatsFactor == 0 || c.Splats > 0 || c.RefineEvery == 0 {
		return
	}
	every := 0
	if r.eval {
		every = r.testEvery
	}
	train, _ := r.capture.Split(every)
	points := len(r.capture.Points)
	if r.init.Kind == scene.InitRandom {
		points = 0 // what is random says nothing of the capture
	}
	c.Splats = pipeline.SplatsFor(pick(r.capture.Cameras, train), points, r.splatsFactor)
	if c.MaxSplats > 0 {
		c.Splats = min(c.Splats, c.MaxSplats)
	}
	r.noteLater(fmt.Sprintf("the model ends with %s: --splats-factor %g of this capture", count(c.Splats, "splat"), r.splatsFactor))
}
