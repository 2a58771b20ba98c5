package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/load"
	"vksplat/scene/splatfile"
)

func renderCommand(a *cli.Console) *cobra.Command {
	o := newRenderOptions()
	cmd := &cobra.Command{
		Use:   "render FILE|OUT -o DIR",
		Short: "Render a model: from the views of photographs, or on a flight through the scene",
		Long: "Render a model of any format that convert reads, or the newest one in the folder that\n" +
			"train wrote, from the views of a capture or on a trajectory, to pictures or a video. docs/render.md says more.",
		Example: "  vksplat render out -o frames --split test\n" +
			"  vksplat render out --trajectory ellipse --size 1920x1080 --video flight.mp4\n" +
			"  vksplat render model.ply --cameras my_scene -o frames --format exr --depth",
		Args: one("FILE or OUT"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	table := o.table()
	register(cmd.Flags(), table)
	offerValues(a, cmd, table)
	o.given = cmd.Flags().Changed
	cmd.RunE = runs(a, func(args []string) error {
		o.file = args[0]
		o.camerasOfRun()
		warnIdleViews(a, o)
		return runRender(a, o)
	})
	return cmd
}

// warnIdleViews warns of flags that change nothing.
func warnIdleViews(a *cli.Console, o *renderOptions) {
	for _, opt := range o.captureOptions() {
		switch {
		case !o.given(opt.name):
		case opt.name == "masks" || opt.name == "invert-masks":
			a.Warn("--" + opt.name + " has no effect on pictures")
		case o.fromJSON() || o.cameras == "":
			a.Warn(noEffect(opt.name, "a capture as --cameras"))
		}
	}
	for _, idle := range []struct {
		flag    string
		without string
		has     bool
	}{
		{"seconds", "--trajectory", o.trajectory != ""}, {"fps", "--trajectory or --video", o.trajectory != "" || o.video != ""}, {"crf", "--video", o.video != ""},
		{"dataparser-transforms", "a --trajectory from a file", o.fromFile()},
		{"depth", "-o", o.out != "" || o.format == formatNone}, {"alpha", "-o", o.out != "" || o.format == formatNone},
		{"start-frame", "--name or --trajectory", o.name != "" || o.trajectory != ""},
	} {
		if o.given(idle.flag) && !idle.has {
			a.Warn(noEffect(idle.flag, idle.without))
		}
	}
	if o.given("background") && o.picture().Alpha && o.video == "" {
		a.Warn("--background has no effect with --alpha")
	}
}

// camerasOfRun makes of a run's folder as --cameras the cameras.json in it: such a folder is no capture.
func (o *renderOptions) camerasOfRun() {
	if file := filepath.Join(o.cameras, "cameras.json"); o.cameras != "" && output.IsFile(file) && output.IsFile(filepath.Join(o.cameras, "cfg_args")) {
		o.cameras = file
	}
}

// fromJSON reports whether the cameras are those of a file that train wrote.
func (o *renderOptions) fromJSON() bool {
	return strings.EqualFold(filepath.Ext(o.cameras), ".json") && !output.IsFolder(o.cameras)
}

// runRender draws what is asked for.
func runRender(a *cli.Console, o *renderOptions) (err error) {
	missing := o.findFiles()
	if err := o.check(); err != nil {
		return err
	}
	if missing != nil {
		return missing
	}
	defer func() { err = remedy.Memory(err) }()
	if err := pipeline.LimitHeap(o.device); err != nil {
		return err
	}
	release, err := o.claim()
	if err != nil {
		return err
	}
	defer release()
	a.OnAbort = func() {
		o.drawing.drop()
		release()
	}
	splats, info, err := models.Open(a, o.file)
	if err != nil {
		return err
	}
	origin := models.OriginOf(&info)
	capture, err := readCameras(a, o, origin)
	if err != nil {
		return err
	}
	if err := o.look(&info, capture.Synthetic); err != nil {
		return err
	}
	flown, err := o.way(capture, origin)
	if err != nil {
		return err
	}
	device, err := pipeline.OpenDevice(o.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, models.CloseDevice(device)) }()
	device.LimitHeap()
	if note := device.Note(); note != "" {
		a.Note(note)
	}
	splats = splats.FromCapture(capture.Frame, origin)
	shots, err := o.shots(capture, flown, splats)
	if err != nil {
		return err
	}
	if err := models.CheckNear(o.config.Near, splats, camerasOf(shots)); err != nil {
		return err
	}
	warnUncovered(a, o, capture, shots)
	return renderAll(a, o, device, splats, shots, capture.Frame.Scale)
}

// way reads that of --trajectory FILE, and moves the capture with it into the training frame.
func (o *renderOptions) way(c *scene.Capture, origin [3]float64) ([]scene.Camera, error) {
	flown, err := o.flight(c, origin)
	if err != nil {
		return nil, err
	}
	if n := o.views(c, flown); o.single != "" && n != 1 {
		return nil, o.notSingle(n)
	}
	return normalise(c, flown), nil
}

// look takes in how the model is to be drawn: as the flags say, else as it was trained.
func (o *renderOptions) look(info *splatfile.Info, synthetic bool) error {
	if o.config.Antialiased = info.Meta.Antialiased; o.given("antialiased") {
		o.config.Antialiased = o.antialiased
	}
	trained, err := captured.LookOf(o.file, &info.Meta)
	if err == nil {
		trained.Take(&o.config, o.given, synthetic)
	}
	return err
}

// claim claims the folder of the pictures, if there are any: two renders at once would replace each other's pictures and render.json. One after the other,
// renders of several models or cameras may share a folder.
func (o *renderOptions) claim() (release func(), err error) {
	if o.out == "" {
		return func() {}, nil
	}
	if o.single != "" {
		return output.Claim(o.out, false)
	}
	if err := output.RefusePlace(o.out, "flag --output: ", recordFile); err != nil {
		return nil, err
	}
	return output.Claim(o.out, true)
}

// normalise moves the capture into the training frame, and with it the cameras of a flight. Where the capture has no cameras, the flight's are its.
func normalise(c *scene.Capture, flown []scene.Camera) []scene.Camera {
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

// readViews reads the cameras, in the capture's own frame. Those of a cameras.json
// without a recorded origin stand where the model does: origin is the model's.
func readViews(a *cli.Console, o *renderOptions, origin [3]float64) (*scene.Capture, error) {
	if !o.fromJSON() {
		options := o.load.Options()
		options.FlagOf = captureFormat
		capture, err := load.Capture(o.cameras, options)
		if err != nil {
			return nil, err
		}
		captured.TellWarnings(a, capture)
		return capture, nil
	}
	cams, info, err := inria.ReadCameras(o.cameras)
	if err != nil {
		return nil, err
	}
	if info.Centred > 0 {
		a.Warn(fmt.Sprintf("%s: no principal point for %s; the picture's centre is taken", o.cameras, cli.Count(info.Centred, "camera")))
	}
	heldOut := info.HeldOut
	if heldOut == nil && o.split != "" {
		heldOut = measuredViews(filepath.Dir(o.cameras))
	}
	at, err := captured.ReadOrigin(filepath.Dir(o.cameras), origin)
	if err != nil {
		return nil, err
	}
	return &scene.Capture{Cameras: captured.Shifted(cams, [3]float64{-at[0], -at[1], -at[2]}), HeldOut: heldOut}, nil
}
