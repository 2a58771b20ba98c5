package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/scene/calibrate"
	"vksplat/scene/colmap"
	"vksplat/scene/initial"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/metric"
	"vksplat/scene/ply"
)

// dataset is a capture as training and measuring know it.
type dataset struct {
	*Options
	*notes
	Capture *scene.Capture  // in the training frame from prepare on; its points are those of training until then
	Train   []int           // cameras of Capture that are trained on
	Test    []int           // held-out ones
	origin  [3]float64      // subtracted from written coordinates
	cameras []scene.Camera  // to be written: in the capture's own frame, less the origin
	points  []ply.FilePoint // likewise
	nPoints int             // of capture, those left out aside; it gives them up when the splats are made
	ignored int             // points left out because they are close to a camera

	training *scene.Capture // what training knows: Capture without held-out cameras, in the same frame
	known    knowns         // of the photos that are trained on
	depths   []scene.Depths // of the points that each camera in training sees
	shell    float64        // radius of the far shell that training began with, 0 without
	takers   map[string]int // numbers of the cameras that took the photos, by cameraName

	calibrated *calibrate.Result // nil where no calibration was asked for
	latest     *refinement       // what refined returned last

	// names of the held-out cameras of a run that is resumed, by its record; none: flags and files choose them
	recorded []string
}

// load reads the capture, or what a block sees of it, holds photos out, and keeps what training may know in
// training. A block is trained in a frame of its own, like any capture of its size: learning rates, thresholds of
// refinement and the noise of MCMC go by the distances of its cameras, and a city's would be far too coarse for a
// street. Files are in the capture's frame.
func (d *dataset) load(ctx context.Context) (err error) {
	if d.Divided == nil {
		d.Capture, err = load.Capture(d.Scene, d.Load.Options())
	} else {
		d.Capture, err = d.Divided.Load(d.Load.Options())
	}
	if err != nil {
		return err
	}
	every := 0
	if d.Eval {
		every = d.TestEvery
	}
	if len(d.recorded) > 0 { // lost photos are reported with other changes
		d.Capture.HoldOutCameras(d.recorded)
	} else if err := captured.HoldOut(d.Capture, d.TestList, every); err != nil {
		return err
	}
	if d.Divided == nil { // else Load did
		if err := d.calibrate(ctx); err != nil {
			return err
		}
		if err := d.dropUnobserved(); err != nil {
			return err
		}
	}
	c := d.Capture
	d.choices.asTaken = d.worthTaking(c.Cameras)
	d.configure()
	all := c.Points
	if d.Divided != nil {
		if err := d.Divided.Restrict(c, int(d.Block)); err != nil {
			return err
		}
	}
	if d.Train, d.Test = c.Split(0); len(d.Train) == 0 {
		return fault.Data("hold out photos", c.Root, "leave photos to train on", "all %s are held out",
			cli.Count(len(d.Test), "photo"))
	}
	if err := d.refuseSmall(); err != nil {
		return err
	}
	if d.Eval && len(d.Test) == 0 && d.Divided == nil {
		d.warnLater("nothing is measured: none of the photos that the capture holds out was found")
	}
	d.training = c.Training()
	if d.Divided != nil {
		// By all points: a block leaves out most of those outside of it, also of what stands in front of it.
		whole := *d.training
		whole.Points = all
		d.depths = whole.Depths(d.Config.Carve)
	}
	d.known = knowns{Options: d.Options, notes: d.notes}
	return errors.Join(d.known.findDepths(d.training, all), d.known.findNormals(d.training),
		d.known.findAnchors(d.training))
}

// calibrate checks the capture's cameras, and replaces them by better ones.
func (d *dataset) calibrate(ctx context.Context) error {
	var err error
	d.Capture, d.calibrated, err = captured.Calibrate(ctx, d.Capture, d.Scene, &d.Load, d.Options.Device,
		d.console.Note, d.noteLater)
	if err != nil || d.calibrated == nil {
		return err
	}
	if reason := d.calibrated.Reason(); reason != "" {
		d.detailLater("the cameras stay as they are: " + reason)
	}
	return nil
}

// worthTaking reports whether photos are trained on as taken unless settings say otherwise: a lens distorts, the camera
// moved, or lenses are learnt. Other trainers undistort, so the capture's own cameras, where they are asked for, are
// trained on as they do. A fisheye may show the dark ring around its image circle.
func (o *Options) worthTaking(cams []scene.Camera) bool {
	has := func(f func(c *scene.Camera) bool) bool {
		return slices.ContainsFunc(cams, func(c scene.Camera) bool { return f(&c) })
	}
	moved := has((*scene.Camera).Moved)
	if _, _, err := scene.AsTaken(cams); err != nil || scene.CheckTravel(cams) != nil {
		return false
	}
	if o.Config.RefineCameras {
		return !moved
	}
	return o.Load.Cameras != captured.CamerasGiven && o.Divided == nil &&
		(moved || has(func(c *scene.Camera) bool { return c.Lens != nil })) &&
		!has(func(c *scene.Camera) bool { return c.Lens != nil && c.Model == scene.Fisheye })
}

// refuseSmall refuses held-out photos that are too small to be measured once the model is trained.
func (d *dataset) refuseSmall() error {
	var small []string
	for _, i := range d.Test {
		if cam := &d.Capture.Cameras[i]; d.Eval && min(cam.Width, cam.Height) < metric.SSIMWindow {
			small = append(small, cam.Name)
		}
	}
	if len(small) == 0 {
		return nil
	}
	return fault.Data("hold out photos", d.Capture.Root, "take these photos out of the capture, hold out others with "+
		fault.Setting("test-list")+" FILE, or train at a smaller "+fault.Setting("downscale"), "%s",
		scene.Warning{Count: len(small), Names: scene.FirstNames(small),
			Text: fmt.Sprintf("%d of %d held-out photos have a side of fewer than %d pixels, and cannot be measured",
				len(small), len(d.Test), metric.SSIMWindow)})
}

// dropUnobserved leaves out the points that only held-out photos account for.
func (d *dataset) dropUnobserved() error {
	dropped, tracked, err := colmap.DropUnobserved(d.Capture)
	switch {
	case err != nil:
		return err
	case !tracked && startsAtPoints(d.Options):
		d.noteLater("the capture does not say which photos observed its points: held-out photos may have helped to " +
			"find them")
	case dropped > 0:
		d.detailLater(fmt.Sprintf("ignored %s that only held-out photos and at most one training photo observed",
			cli.Count(dropped, "point")))
	}
	return nil
}

// clear finds the empty space in front of the cameras, and drops the points in it. The capture is in the training
// frame.
func (d *dataset) clear() {
	t := d.training
	if d.Divided == nil {
		d.depths = t.Depths(d.Config.Carve)
	} else {
		for i := range d.depths {
			d.depths[i].Empty *= t.Frame.Scale
			d.depths[i].Median *= t.Frame.Scale
		}
	}
	if d.ignored = t.Clear(d.depths); d.ignored > 0 {
		say := d.detailLater
		if d.ignored > len(t.Points)/20 {
			say = d.noteLater
		}
		say(fmt.Sprintf("ignored %s close to a camera", cli.Count(d.ignored, "outlier point")))
	}
	d.nPoints = len(t.Points)
}

// nearest says how far the held-out photos' cameras are from those that are trained on, as the files of the run have
// them.
func (d *dataset) nearest() map[string]scene.Nearest {
	cams := d.Capture.Cameras
	if d.latest != nil && d.latest.files != nil {
		cams = d.latest.cameras
	}
	return scene.NearestTo(captured.Pick(cams, d.Train), captured.Pick(cams, d.Test))
}

// heldOutNames are those of the cameras that are held out.
func (d *dataset) heldOutNames() []string {
	names := []string{}
	for _, i := range d.Test {
		names = append(names, d.Capture.Cameras[i].Name)
	}
	return names
}

// decodedCameras lists the cameras that photos are decoded for: those that are trained on, which may see their photos
// as taken, and of the other photos those of the capture. [n_cameras]
func (d *dataset) decodedCameras(trained []scene.Camera) []scene.Camera {
	cams := slices.Clone(d.Capture.Cameras)
	for i, id := range d.Train {
		cams[id] = trained[i]
	}
	return cams
}

// resolution is the size of the photos that are trained on.
func (d *dataset) resolution() string {
	if taken, _, err := scene.AsTaken(d.Capture.Cameras); d.Config.NativeLens && err == nil {
		return captured.Resolution(taken)
	}
	return captured.Resolution(d.Capture.Cameras)
}

// record returns what checkpoints say of the run.
func (d *dataset) record(id *identity) pipeline.RunRecord {
	c := d.Capture
	return pipeline.RunRecord{
		Version: cli.Version(), Preset: d.Preset,
		Capture: checkpoint.CaptureRecord{Fingerprint: id.text, Parts: id.parts, Photos: len(d.Train),
			HeldOut: len(d.Test), Split: captured.SplitHash(d.Train), Points: d.nPoints,
			Resolution: captured.Resolution(c.Cameras)},
		Frame: checkpoint.FrameRecord{Center: c.Frame.Center, Scale: c.Frame.Scale, SceneScale: c.SceneScale,
			Origin: d.origin},
	}
}

// pictureNames are those of the pictures of held-out photos.
func (d *dataset) pictureNames() []string {
	return captured.PictureNames(captured.Pick(d.Capture.Cameras, d.Test))
}

// inspect says what is wrong with the capture, and refuses what cannot be trained on.
func (d *dataset) inspect(ctx context.Context) error {
	report, err := inspect.Capture(ctx, d.Capture,
		inspect.Options{Unused: d.Init.Kind == initial.InitRandom || d.Init.Kind == initial.InitPLY})
	if err != nil {
		return err
	}
	for _, w := range report.Warnings() {
		text := w.String()
		if w.Remedy != "" {
			text += " (" + w.Remedy + ")"
		}
		switch {
		case w.Code == "other-format":
			d.detailLater(text)
		case inspect.Note(w):
			d.noteLater(text)
		default:
			d.warnLater(text)
		}
	}
	return report.Fatal()
}
