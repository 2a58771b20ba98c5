package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/splatfile"
)

func (a *app) renderCommand() *cobra.Command {
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
	a.completes(cmd, table)
	o.given = cmd.Flags().Changed
	cmd.RunE = a.runs(func(args []string) error {
		o.file = args[0]
		o.camerasOfRun()
		a.warnIdleViews(o)
		return a.render(o)
	})
	return cmd
}

// warnIdleViews warns of flags that change nothing.
func (a *app) warnIdleViews(o *renderOptions) {
	for _, opt := range o.captureOptions() {
		switch {
		case !o.given(opt.name):
		case opt.name == "masks" || opt.name == "invert-masks":
			a.warn("--" + opt.name + " has no effect on pictures")
		case o.fromJSON() || o.cameras == "":
			a.warn(noEffect(opt.name, "a capture as --cameras"))
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
			a.warn(noEffect(idle.flag, idle.without))
		}
	}
	if o.given("background") && o.picture().Alpha && o.video == "" {
		a.warn("--background has no effect with --alpha")
	}
}

// camerasOfRun makes of a run's folder as --cameras the cameras.json in it: such a folder is no capture.
func (o *renderOptions) camerasOfRun() {
	if file := filepath.Join(o.cameras, "cameras.json"); o.cameras != "" && isFile(file) && isFile(filepath.Join(o.cameras, "cfg_args")) {
		o.cameras = file
	}
}

// fromJSON reports whether the cameras are those of a file that train wrote.
func (o *renderOptions) fromJSON() bool {
	return strings.EqualFold(filepath.Ext(o.cameras), ".json") && !isFolder(o.cameras)
}

// render draws what is asked for.
func (a *app) render(o *renderOptions) (err error) {
	missing := o.findFiles()
	if err := o.check(); err != nil {
		return err
	}
	if missing != nil {
		return missing
	}
	defer func() { err = memoryHint(err) }()
	if err := pipeline.LimitHeap(o.device); err != nil {
		return err
	}
	release, err := o.claim()
	if err != nil {
		return err
	}
	defer release()
	a.onAbort = func() {
		o.drawing.drop()
		release()
	}
	splats, info, err := a.model(o.file)
	if err != nil {
		return err
	}
	origin := originOf(&info)
	capture, err := a.capture(o, origin)
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
	defer func() { err = errors.Join(err, closeDevice(device)) }()
	device.LimitHeap()
	if note := device.Note(); note != "" {
		a.note(note)
	}
	splats = splats.FromCapture(capture.Frame, origin)
	shots, err := o.shots(capture, flown, splats)
	if err != nil {
		return err
	}
	if err := checkNear(o.config.Near, splats, camerasOf(shots)); err != nil {
		return err
	}
	a.warnUncovered(o, capture, shots)
	return a.renderAll(o, device, splats, shots, capture.Frame.Scale)
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
	trained, err := trainedLookOf(o.file, &info.Meta)
	if err == nil {
		trained.take(&o.config, o.given, synthetic)
	}
	return err
}

// originOf returns what was subtracted from a model's coordinates.
func originOf(info *splatfile.Info) (origin [3]float64) {
	if info.Meta.Origin != nil {
		origin = *info.Meta.Origin
	}
	return origin
}

// claim claims the folder of the pictures, if there are any: two renders at once would replace each other's pictures and render.json. One after the other,
// renders of several models or cameras may share a folder.
func (o *renderOptions) claim() (release func(), err error) {
	if o.out == "" {
		return func() {}, nil
	}
	if o.single != "" {
		return claimFolder(o.out, false)
	}
	if err := refusePlace(o.out, "flag --output: ", recordFile); err != nil {
		return nil, err
	}
	return claimFolder(o.out, true)
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

// model reads a file of splats of any format, or the latest model of a run's folder. What it holds and cannot be drawn is warned of or refused.
func (a *app) model(file string) (*scene.Splats, splatfile.Info, error) {
	splats, info, err := readModel(file)
	if err != nil {
		return nil, info, err
	}
	if bad := splats.NonFinite(); bad > 0 {
		return nil, info, &hintedError{err: fmt.Errorf("%s: %w: %d of %d splats hold NaN or infinite numbers", file, fault.ErrData, bad, splats.N),
			hint: "the training that made this file diverged, or the file is damaged: make or copy it again, or leave them out: vksplat convert " + file + " OUT.ply"}
	}
	switch huge := splats.Huge(); {
	case huge == splats.N && huge > 0:
		return nil, info, &hintedError{err: fmt.Errorf("%s: %w: every splat is longer than e^%d, which nothing can draw", file, fault.ErrData, scene.HugeLog),
			hint: "the training that made this file diverged, or the file is damaged or holds no logarithms of scales: make or copy it again"}
	case huge > 0:
		a.warn(fmt.Sprintf("%s: %d of %s are longer than e^%d: they may hide the others; vksplat convert leaves them out",
			file, huge, count(splats.N, "splat"), scene.HugeLog))
	}
	for _, n := range info.Notes {
		a.warn(file + ": " + n)
	}
	return splats, info, nil
}

// readModel reads a model into memory.
func readModel(file string) (*scene.Splats, splatfile.Info, error) {
	model, err := splatfile.Open(file)
	if err != nil {
		return nil, splatfile.Info{}, err
	}
	splats, err := splatfile.All(model)
	return splats, model.Info(), errors.Join(err, model.Close())
}

// views reads the cameras, in the capture's own frame. Those of a cameras.json
// without a recorded origin stand where the model does: origin is the model's.
func (a *app) views(o *renderOptions, origin [3]float64) (*scene.Capture, error) {
	if !o.fromJSON() {
		options := o.load.options()
		options.FlagOf = captureFormat
		capture, err := load.Capture(o.cameras, options)
		if err != nil {
			return nil, err
		}
		a.tellWarnings(capture)
		return capture, nil
	}
	cams, info, err := inria.ReadCameras(o.cameras)
	if err != nil {
		return nil, err
	}
	if info.Centred > 0 {
		a.warn(fmt.Sprintf("%s: no principal point for %s; the picture's centre is taken", o.cameras, count(info.Centred, "camera")))
	}
	heldOut := info.HeldOut
	if heldOut == nil && o.split != "" {
		heldOut = measuredViews(filepath.Dir(o.cameras))
	}
	at, err := readOrigin(filepath.Dir(o.cameras), origin)
	if err != nil {
		return nil, err
	}
	return &scene.Capture{Cameras: shifted(cams, [3]float64{-at[0], -at[1], -at[2]}), HeldOut: heldOut}, nil
}

// tellWarnings says what was found while a capture was read.
func (a *app) tellWarnings(c *scene.Capture) {
	for _, w := range c.Warnings {
		if inspect.Note(w) {
			a.note(w.String())
		} else {
			a.warn(w.String())
		}
	}
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
