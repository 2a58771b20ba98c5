package render

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/load"
	"vksplat/scene/splatfile"
)

// CamerasOfRun makes of a run's folder as --cameras the cameras.json in it: such a folder is no capture.
func (o *Options) CamerasOfRun() {
	if file := filepath.Join(o.Cameras, "cameras.json"); o.Cameras != "" && output.IsFile(file) &&
		output.IsFile(filepath.Join(o.Cameras, "cfg_args")) {
		o.Cameras = file
	}
}

// FromJSON reports whether the cameras are those of a file that train wrote.
func (o *Options) FromJSON() bool {
	return strings.EqualFold(filepath.Ext(o.Cameras), ".json") && !output.IsFolder(o.Cameras)
}

func Run(console *cli.Console, o *Options) (err error) {
	missing := o.FindFiles()
	if err := o.Check(); err != nil {
		return err
	}
	if missing != nil {
		return missing
	}
	defer func() { err = remedy.Memory(remedy.Ceiling(err, o.Device)) }()
	if err := models.LimitHeap(console, o.Device); err != nil {
		return err
	}
	release, err := o.claim()
	if err != nil {
		return err
	}
	defer release()
	console.OnAbort = func() {
		o.drawing.drop()
		release()
	}
	m, err := openSubject(console, o.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	origin := models.OriginOf(&m.info)
	capture, err := readCameras(console, o, origin)
	if err != nil {
		return err
	}
	if err := o.Look(console, &m.info, capture.Synthetic); err != nil {
		return err
	}
	flown, err := o.way(capture, origin)
	if err != nil {
		return err
	}
	device, err := models.OpenDevice(console, o.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, models.CloseDevice(device)) }()
	m.splats = m.splats.FromCapture(capture.Frame, origin)
	shots, err := o.shots(capture, flown, m.splats)
	if err != nil {
		return err
	}
	warnUncovered(console, o, capture, shots)
	return renderAll(console, o, device, m, shots, capture.Frame)
}

// way reads that of --trajectory FILE, and moves the capture with it into the training frame.
func (o *Options) way(c *scene.Capture, origin [3]float64) ([]scene.Camera, error) {
	flown, err := o.flight(c, origin)
	if err != nil {
		return nil, err
	}
	if n := o.views(c, flown); o.single != "" && n != 1 {
		return nil, o.notSingle(n)
	}
	return Normalise(c, flown), nil
}

// Look takes in how the model is to be drawn: as the flags say, else as it was trained.
func (o *Options) Look(console *cli.Console, info *splatfile.Info, synthetic bool) error {
	if o.Config.Antialiased = info.Meta.Antialiased; o.Given("antialiased") {
		o.Config.Antialiased = o.Antialiased
	}
	trained, err := captured.LookOf(o.File, &info.Meta)
	if err != nil {
		return err
	}
	trained.Take(&o.Config, o.Given, synthetic)
	if o.Config.Focal, err = captured.TrainedFocal(o.File); err != nil { // which helps, and no more
		console.Note(err.Error() + ": the focal length of the photos that the model was trained on is not known")
	}
	return nil
}

// claim claims the folder of the pictures, if there are any: two renders at once would replace each other's pictures
// and render.json. One after the other, renders of several models or cameras may share a folder.
func (o *Options) claim() (release func(), err error) {
	if o.Out == "" {
		return func() {}, nil
	}
	if o.single != "" {
		return output.Claim(o.Out, false)
	}
	list, err := output.ListCheckpoints(filepath.Join(o.Out, output.CheckpointFolder))
	if err != nil {
		return nil, err
	}
	if err := output.RefuseFormer(o.Out, len(list), "choose a folder of the pictures' own, as in "+
		filepath.Join(o.Out, "frames")); err != nil {
		return nil, err
	}
	if err := output.RefusePlace(o.Out, "output", recordFile); err != nil {
		return nil, err
	}
	return output.Claim(o.Out, true)
}

// Normalise moves the capture into the training frame, and with it the cameras of a flight. Where the capture has no
// cameras, the flight's are its.
func Normalise(c *scene.Capture, flown []scene.Camera) []scene.Camera {
	c.Points = nil
	if len(c.Cameras) == 0 {
		c.Cameras = flown
	}
	flight := &scene.Capture{Cameras: slices.Clone(flown)}
	c.Cameras = slices.Clone(c.Cameras)
	c.Normalise()
	flight.NormaliseTo(c.Frame, c.SceneScale)
	return flight.Cameras
}

func camerasOf(shots []shot) []scene.Camera {
	cams := make([]scene.Camera, len(shots))
	for i, s := range shots {
		cams[i] = s.camera
	}
	return cams
}

// ReadViews reads the cameras, in the capture's own frame. Those of a cameras.json
// without a recorded origin stand where the model does: origin is the model's.
func ReadViews(console *cli.Console, o *Options, origin [3]float64) (*scene.Capture, error) {
	if !o.FromJSON() {
		options := o.Load.Options()
		options.FlagOf = CaptureFormat
		capture, err := load.Capture(o.Cameras, options)
		if err != nil {
			return nil, err
		}
		captured.TellWarnings(console, capture)
		capture.HoldOutEvery(captured.HeldOutEvery)
		return capture, nil
	}
	cams, info, err := inria.ReadCameras(o.Cameras)
	if err != nil {
		return nil, err
	}
	if info.Centred > 0 {
		console.Warn(fmt.Sprintf("%s: no principal point for %s; the picture's centre is used", o.Cameras,
			cli.Count(info.Centred, "camera")))
	}
	heldOut := info.HeldOut
	if heldOut == nil && o.Split != "" {
		heldOut = measuredViews(filepath.Dir(o.Cameras))
	}
	at, err := captured.ReadOrigin(o.Cameras, origin)
	if err != nil {
		return nil, err
	}
	return &scene.Capture{Cameras: captured.Shifted(cams, [3]float64{-at[0], -at[1], -at[2]}), HeldOut: heldOut}, nil
}
