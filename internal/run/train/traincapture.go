package train

import (
	"errors"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/scene"
	"vksplat/scene/load"
)

// loadCapture reads the capture, or what a block sees of it. A block is trained in a frame of its own, like any capture
// of its size: learning rates, thresholds of refinement and the noise of MCMC go by the distances of its cameras, and a
// city's would be far too coarse for a street. Files are in the capture's frame.
func (r *Run) loadCapture() (*scene.Capture, error) {
	if r.Divided == nil {
		c, err := load.Capture(r.Scene, r.Load.Options())
		if err != nil {
			return nil, err
		}
		return c, errors.Join(r.findDepths(c, c.Points), r.findNormals(c), r.findAnchors(c))
	}
	c, err := r.Divided.Load(r.Load.Options())
	if err != nil {
		return nil, err
	}
	all := c.Points
	if err := r.Divided.Restrict(c, int(r.Block)); err != nil {
		return c, err
	}
	// By all points: a block leaves out most of those outside of it, also of what stands in front of it.
	block := c.Points
	c.Points = all
	r.depths = c.Depths(r.Config.Carve)
	c.Points = block
	return c, errors.Join(r.findDepths(c, all), r.findNormals(c), r.findAnchors(c))
}

// clear finds the empty space in front of the cameras, and drops the points in it. The capture is in the training
// frame.
func (r *Run) clear() {
	if r.Divided == nil {
		r.depths = r.Capture.Depths(r.Config.Carve)
	} else {
		for i := range r.depths {
			r.depths[i].Empty *= r.Capture.Frame.Scale
			r.depths[i].Median *= r.Capture.Frame.Scale
		}
	}
	if n := r.Capture.Clear(r.depths); n > 0 {
		r.noteLater(fmt.Sprintf("left out %s right in front of a camera, where wrong matches put them",
			cli.Count(n, "point")))
	}
	r.nPoints = len(r.Capture.Points)
	if len(r.depths) > 0 {
		r.depths = captured.Pick(r.depths, r.Train)
	}
}
