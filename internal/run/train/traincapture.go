package train

import (
	"errors"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/metric"
)

// loadCapture reads the capture, or what a block sees of it, holds photos out, and keeps what training may know in
// training. A block is trained in a frame of its own, like any capture of its size: learning rates, thresholds of
// refinement and the noise of MCMC go by the distances of its cameras, and a city's would be far too coarse for a
// street. Files are in the capture's frame.
func (r *Run) loadCapture() (err error) {
	if r.Divided == nil {
		r.Capture, err = load.Capture(r.Scene, r.Load.Options())
	} else {
		r.Capture, err = r.Divided.Load(r.Load.Options())
	}
	if err != nil {
		return err
	}
	c, every := r.Capture, 0
	if r.Eval {
		every = r.TestEvery
	}
	for name := range c.LeftOut {
		c.LeftOut[name] = c.LeftOut[name] && !r.formerSplit
	}
	if len(r.recorded) > 0 { // photos that are lost are told of with other changes
		c.HoldOutCameras(r.recorded)
	} else if err := captured.HoldOut(c, r.TestList, every); err != nil {
		return err
	}
	if r.Divided == nil { // else Load did
		if err := r.dropUnobserved(); err != nil {
			return err
		}
	}
	all := c.Points
	if r.Divided != nil {
		if err := r.Divided.Restrict(c, int(r.Block)); err != nil {
			return err
		}
	}
	if r.Train, r.Test = c.Split(0); len(r.Train) == 0 {
		return fault.Data("hold out photos", c.Root, "leave photos to train on", "all %s are held out",
			cli.Count(len(r.Test), "photo"))
	}
	if err := r.refuseSmall(); err != nil {
		return err
	}
	if r.Eval && len(r.Test) == 0 && r.Divided == nil {
		r.warnLater("nothing is measured: none of the photos that the capture holds out was found")
	}
	r.training = c.Training()
	if r.Divided != nil {
		// By all points: a block leaves out most of those outside of it, also of what stands in front of it.
		whole := *r.training
		whole.Points = all
		r.depths = whole.Depths(r.Config.Carve)
	}
	return errors.Join(r.findDepths(r.training, all), r.findNormals(r.training), r.findAnchors(r.training))
}

// refuseSmall refuses held-out photos that are too small to be measured once the model is trained.
func (r *Run) refuseSmall() error {
	var small []string
	for _, i := range r.Test {
		if cam := &r.Capture.Cameras[i]; r.Eval && min(cam.Width, cam.Height) < metric.SSIMWindow {
			small = append(small, cam.Name)
		}
	}
	if len(small) == 0 {
		return nil
	}
	return fault.Data("hold out photos", r.Capture.Root, "take these photos out of the capture, hold out others with "+
		fault.Setting("test-list")+" FILE, or train at a smaller "+fault.Setting("downscale"), "%s",
		scene.Warning{Count: len(small), Names: scene.FirstNames(small),
			Text: fmt.Sprintf("%d of %d held-out photos have a side of fewer than %d pixels, and cannot be measured",
				len(small), len(r.Test), metric.SSIMWindow)})
}

// dropUnobserved leaves out the points that only held-out photos account for.
func (r *Run) dropUnobserved() error {
	dropped, tracked, err := colmap.DropUnobserved(r.Capture)
	switch {
	case err != nil:
		return err
	case !tracked && r.beginsAtPoints():
		r.noteLater("the capture does not say which photos observed its points: held-out photos may have helped to " +
			"find them")
	case dropped > 0:
		r.detailLater(fmt.Sprintf("ignored %s that only held-out photos and at most one training photo observed",
			cli.Count(dropped, "point")))
	}
	return nil
}

// clear finds the empty space in front of the cameras, and drops the points in it. The capture is in the training
// frame.
func (r *Run) clear() {
	t := r.training
	if r.Divided == nil {
		r.depths = t.Depths(r.Config.Carve)
	} else {
		for i := range r.depths {
			r.depths[i].Empty *= t.Frame.Scale
			r.depths[i].Median *= t.Frame.Scale
		}
	}
	if n := t.Clear(r.depths); n > 0 {
		say := r.detailLater
		if n > len(t.Points)/20 {
			say = r.noteLater
		}
		say(fmt.Sprintf("ignored %s close to a camera", cli.Count(n, "outlier point")))
	}
	r.nPoints = len(t.Points)
}
