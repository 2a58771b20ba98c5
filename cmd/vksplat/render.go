package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// renderOptions is everything that render is asked for.
type renderOptions struct {
	file, cameras, out string
	antialiased        bool
	antialiasedSet     bool // the flag was given: the file's comment does not count
	load               loadFlags
	device             pipeline.DeviceOptions
	config             pipeline.RenderConfig
	drawing            halfPictures
}

func (a *app) renderCommand() *cobra.Command {
	o := &renderOptions{load: loadFlags{model: scene.AnyModel}, config: pipeline.RenderConfig{Near: pipeline.DefaultConfig().Near}}
	cmd := &cobra.Command{
		Use:   "render FILE|OUT --cameras SCENE|cameras.json -o DIR",
		Short: "Render a model from the views of photographs",
		Long: "Render a model from the views of a capture, or of the cameras.json that train\n" +
			"writes. The model is a file of any format that convert reads, or the folder of a\n" +
			"training run. The pictures are PNGs, named after the photos and of their size.",
		Example: "  vksplat render out/point_cloud/iteration_30000/point_cloud.ply --cameras out/cameras.json -o frames",
		Args:    one("FILE of splats"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return modelExtensions(), cobra.ShellCompDirectiveFilterFileExt
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.cameras, "cameras", "", "a capture's folder or a cameras.json: `SCENE|FILE` (required)")
	fs.StringVarP(&o.out, "output", "o", "", "write to the folder `DIR` (required)")
	table := []optionGroup{{options: lookOptions(&o.config.Background, &o.config.Near)}, {options: o.load.table()}, {options: deviceOptions(&o.device)}}
	fs.BoolVar(&o.antialiased, "antialiased", false, "compensate opacity for the pixel filter (default: as the file says)")
	register(fs, table)
	a.completes(cmd, table)
	cmd.RunE = a.runs(func(args []string) error {
		o.file, o.antialiasedSet = args[0], fs.Changed("antialiased")
		a.warnIdleViews(o, fs.Changed)
		return a.render(o)
	})
	return cmd
}

// warnIdleViews warns of flags that change nothing.
func (a *app) warnIdleViews(o *renderOptions, given func(string) bool) {
	for _, opt := range o.load.table() {
		switch {
		case !given(opt.name):
		case opt.name == "masks" || opt.name == "invert-masks":
			a.warn("--" + opt.name + " has no effect on pictures")
		case o.fromJSON():
			a.warn(noEffect(opt.name, "a capture as --cameras"))
		}
	}
}

// fromJSON reports whether the cameras are those of a file that train wrote.
func (o *renderOptions) fromJSON() bool {
	return strings.EqualFold(filepath.Ext(o.cameras), ".json") && !isFolder(o.cameras)
}

// render draws a model from every camera.
func (a *app) render(o *renderOptions) (err error) {
	if o.cameras == "" || o.out == "" {
		return usagef("as in: vksplat render model.ply --cameras SCENE -o DIR", "--cameras and -o are required")
	}
	if near := o.config.Near; !(near > 0) || math.IsInf(near, 0) {
		return usagef("give a distance above 0, as in 0.01", "flag --near: %g is no distance", near)
	}
	defer func() { err = memoryHint(err) }()
	if err := pipeline.LimitHeap(o.device); err != nil {
		return err
	}
	// Not exclusive: renders of several models or cameras may share a folder.
	release, err := claimFolder(o.out, false)
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
	if o.config.Antialiased = info.Meta.Antialiased; o.antialiasedSet {
		o.config.Antialiased = o.antialiased
	}
	var origin [3]float64
	if info.Meta.Origin != nil {
		origin = *info.Meta.Origin
	}
	capture, err := a.views(o, origin)
	if err != nil {
		return err
	}
	capture.Points = nil
	capture.Normalise()
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
	if err := checkNear(o.config.Near, splats, capture.Cameras); err != nil {
		return err
	}
	return a.renderAll(o, device, splats, capture.Cameras)
}

// model reads a file of splats of any format, or the latest model of a run's folder. What it holds and cannot be drawn is warned of or refused.
func (a *app) model(file string) (*scene.Splats, splatfile.Info, error) {
	splats, info, err := readModel(file)
	if err != nil {
		return nil, info, err
	}
	if bad := splats.NonFinite(); bad > 0 {
		return nil, info, &hintedError{err: fmt.Errorf("%s: %w: %d of %d splats hold NaN or infinite numbers", file, scene.ErrData, bad, splats.N),
			hint: "the training that made this file diverged, or the file is damaged: make or copy it again, or leave them out: vksplat convert " + file + " OUT.ply"}
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

// modelExtensions lists how names of models end, without a dot, for completion.
func modelExtensions() (list []string) {
	for _, f := range splatfile.Formats() {
		for _, ext := range f.Extensions {
			list = append(list, ext[strings.LastIndex(ext, ".")+1:])
		}
	}
	return list
}

// views reads the cameras, in the capture's own frame. Those of a cameras.json
// without a recorded origin stand where the model does: origin is the model's.
func (a *app) views(o *renderOptions, origin [3]float64) (*scene.Capture, error) {
	if !o.fromJSON() {
		capture, err := scene.Load(o.cameras, o.load.options())
		if err != nil {
			return nil, err
		}
		for _, w := range capture.Warnings {
			if w.Note() {
				a.note(w.String())
			} else {
				a.warn(w.String())
			}
		}
		return capture, nil
	}
	cams, info, err := scene.ReadCameras(o.cameras)
	if err != nil {
		return nil, err
	}
	if info.Centred > 0 {
		a.warn(fmt.Sprintf("%s: no principal point for %s; the picture's centre is taken", o.cameras, count(info.Centred, "camera")))
	}
	at, err := readOrigin(filepath.Dir(o.cameras), origin)
	if err != nil {
		return nil, err
	}
	return &scene.Capture{Cameras: shifted(cams, [3]float64{-at[0], -at[1], -at[2]})}, nil
}

// renderAll writes one picture per camera. Both are in the training frame.
func (a *app) renderAll(o *renderOptions, device *pipeline.Device, splats *scene.Splats, cams []scene.Camera) (err error) {
	ctx, stop := a.interruptible(always("stopping after the pictures that are being written"))
	defer stop()
	renderer, err := pipeline.NewRenderer(device, splats, cams, o.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, renderer.Close()) }()
	files := pictureNames(cams)
	a.printf("%s, %s, %s of %s\n", device.Name(), count(splats.N, "splat"), count(len(cams), "picture"), resolution(cams))
	show := newProgress(a.stdout, progressAuto, 0, len(cams))
	show.draws, show.text = true, a.text
	a.text.Lock()
	a.show = show
	a.text.Unlock()
	defer show.interrupt()
	writers := newPictureWriters(renderer.AtOnce(), show)
	for i, cam := range cams {
		if err = writers.add(ctx, func(memory []float32) ([]float32, error) {
			return renderer.RenderInto(memory, cam)
		}, func(rgb []float32) error {
			return o.drawing.write(filepath.Join(o.out, files[i]), func(path string) error {
				return scene.WritePNG(path, rgb, cam.Width, cam.Height)
			})
		}); err != nil {
			break
		}
	}
	if err = errors.Join(writers.finish(), err); err != nil {
		return err
	}
	show.interrupt()
	a.printf("pictures: %s\n", o.out)
	return nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
