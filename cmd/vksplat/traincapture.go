package main

import (
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/scene"
	"vksplat/scene/load"
)

// loadCapture reads the capture, or what a block sees of it. A block is trained in a frame of its own, like any capture of its size: learning rates, thresholds of
// refinement and the noise of MCMC go by the distances of its cameras, and a city's would be far too coarse for a street. Files are in the capture's frame.
func (r *trainRun) loadCapture() (*scene.Capture, error) {
	if r.divided == nil {
		return load.Capture(r.scene, r.load.Options())
	}
	c, err := r.divided.Load(r.load.Options())
	if err != nil {
		return nil, err
	}
	all := c.Points
	if err := r.divided.Restrict(c, int(r.block)); err != nil {
		return c, err
	}
	// By all points: a block leaves out most of those outside of it, also of what stands in front of it.
	block := c.Points
	c.Points = all
	r.depths = c.Depths(r.config.Carve)
	c.Points = block
	return c, nil
}

// clear finds the empty space in front of the cameras, and drops the points in it. The capture is in the training
// frame.
func (r *trainRun) clear() {
	if r.divided == nil {
		r.depths = r.capture.Depths(r.config.Carve)
	} else {
		for i := range r.depths {
			r.depths[i].Empty *= r.capture.Frame.Scale
			r.depths[i].Median *= r.capture.Frame.Scale
		}
	}
	if n := r.capture.Clear(r.depths); n > 0 {
		r.noteLater(fmt.Sprintf("left out %s right in front of a camera, where wrong matches put them", cli.Count(n, "point")))
	}
	r.nPoints = len(r.capture.Points)
	if len(r.depths) > 0 {
		r.depths = captured.Pick(r.depths, r.train)
	}
}
