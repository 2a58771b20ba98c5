package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/pipeline"
	"vksplat/scene"
)

// heldOutEvery is the spacing of held-out photos, as in the papers.
const heldOutEvery = 8

// minPhotos is how many photos training needs at least.
const minPhotos = 3

func (a *app) trainCommand() *cobra.Command {
	o := newTrainOptions()
	cmd := &cobra.Command{
		Use:   "train SCENE -m OUT",
		Short: "Train a model from photographs",
		Long: "Train a model from the photographs of SCENE, a folder that COLMAP or a compatible\n" +
			"program wrote. OUT gets the model as point_cloud/iteration_N/point_cloud.ply, which\n" +
			"viewers read, and with --eval the scores and pictures of the held-out photos.\n" +
			"Ctrl-C stops after the step, saves and evaluates; a second one aborts.",
		Example: "  vksplat train my_scene -m out --eval\n  vksplat train my_scene -m out --iterations 7000 --downscale 2",
		Args:    one("SCENE folder"),
		RunE: a.runs(func(args []string) error {
			o.scene = args[0]
			if err := o.check(); err != nil {
				return err
			}
			_, err := a.train(o, nil)
			return err
		}),
	}
	o.register(cmd.Flags())
	return cmd
}

// trainRun is one run of train: what was asked for and what has been read and opened.
type trainRun struct {
	*trainOptions
	app     *app
	capture *scene.Capture // in the training frame from openScene on
	origin  [3]float64     // subtracted from written coordinates
	cameras []scene.Camera // to be written: in the capture's own frame, less the origin
	points  []scene.Point  // likewise
	images  []scene.Image  // of the cameras
	train   []int          // cameras of capture that are trained on
	test    []int          // held-out ones
	device  *pipeline.Device
	trainer *pipeline.Trainer
	notes   []string // warnings that wait for the first line

	saver       *saver
	fingerprint string // of the capture, once it was asked for
}

// train trains, saves and evaluates. The error of an interrupted run is
// errInterrupted; its model and scores are complete all the same. seen, if not
// nil, gets every held-out photo and its render.
func (a *app) train(o *trainOptions, seen func(photo scene.Image, render []float32)) (st *stats, err error) {
	r := &trainRun{trainOptions: o, app: a}
	defer func() { err = errors.Join(err, r.close()) }()
	defer r.flushNotes()
	ctx, stop := a.interruptible("stopping after this step, then saving")
	defer stop()
	defer func() {
		if errors.Is(err, context.Canceled) {
			err = errInterrupted
		}
		err = memoryHint(err)
	}()
	if !o.claimed {
		release, err := claimFolder(o.out, true)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	r.saver = newSaver(r)
	if err := r.saver.find(); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	a.printf("%s\n", r.firstLine())
	r.flushNotes()

	show := newProgress(a.stdout, o.config.Iterations)
	show.markStep = r.trainer.StartStep()
	runErr := r.saver.run(ctx, show.update)
	show.finish()
	interrupted := runErr != nil && ctx.Err() != nil && errors.Is(runErr, ctx.Err())
	if runErr != nil && !interrupted {
		return nil, r.saver.rescue(runErr)
	}
	if interrupted && r.trainer.Step() == 0 {
		return nil, fmt.Errorf("%w before the first step; nothing is saved", errInterrupted)
	}
	saveErr := r.saver.end(interrupted)
	st, err = r.finish(interrupted, seen)
	if err == nil && interrupted {
		err = fmt.Errorf("%w after step %d of %d; the model so far is saved", errInterrupted, st.Step, o.config.Iterations)
		if saveErr == nil && !o.checkpoints.off {
			err = &hintedError{err: err, hint: "go on with the same command and --resume"}
		}
	}
	return st, errors.Join(err, saveErr)
}

// open reads the capture, opens the device and decodes the photos: quick checks
// before slow ones.
func (r *trainRun) open(ctx context.Context) error {
	c, err := scene.Load(r.scene, r.load.options())
	if err != nil {
		return err
	}
	r.capture = c
	if most, have := r.config.MaxSplats, len(c.Points); most > 0 && most < have {
		return usagef(fmt.Sprintf("give --max-splats %d or more", have), "flag --max-splats: %d is less than the capture's %s", most, count(have, "point"))
	}
	for _, w := range c.Warnings {
		r.notes = append(r.notes, w.String())
	}
	if r.device, err = pipeline.OpenDevice(r.trainOptions.device); err != nil {
		return err
	}
	if note := r.device.Note(); note != "" {
		r.notes = append(r.notes, note)
	}
	return r.decode(ctx)
}

// decode decodes all photos. Those that cannot be decoded are left out, unless
// too few remain or --strict was given.
func (r *trainRun) decode(ctx context.Context) error {
	images, err := scene.LoadImages(ctx, r.capture.Cameras, 0)
	var bad *scene.UndecodableError
	if err != nil && (!errors.As(err, &bad) || r.load.strict || len(images)-len(bad.Indices) < minPhotos) {
		return err
	}
	if bad != nil {
		r.notes = append(r.notes, scene.Warning{Count: len(bad.Names), Names: bad.Names[:min(5, len(bad.Names))],
			Text: fmt.Sprintf("left out %d of %d photos that cannot be decoded, the first because of %q", len(bad.Names), len(images), bad.Causes[0])}.String())
		kept := keep(len(images), bad.Indices)
		r.capture.Cameras, images = pick(r.capture.Cameras, kept), pick(images, kept)
	}
	r.images = images
	return nil
}

// prepare keeps what is to be written of the capture, moves it to the training
// frame and hands everything to the device.
func (r *trainRun) prepare() (err error) {
	if r.origin, err = r.capture.Origin(string(r.trainOptions.origin)); err != nil {
		return err
	}
	r.cameras, r.points = moved(r.capture, r.origin)
	if from := r.saver.from; from != nil {
		r.capture.NormaliseTo(from.Header.Frame.Frame(), from.Header.Frame.SceneScale)
	} else {
		r.capture.Normalise()
	}
	every := 0
	if r.eval {
		every = heldOutEvery
	}
	r.train, r.test = r.capture.Split(every)
	views := make([]pipeline.TrainView, len(r.train))
	for i, id := range r.train {
		views[i] = pipeline.TrainView{Camera: r.capture.Cameras[id], Image: r.images[id]}
	}
	if r.saver.from != nil {
		r.trainer, err = r.saver.resume(views)
		return err
	}
	init := scene.Initialise(r.capture.Points, r.config.Seed, r.config.SHDegree)
	r.trainer, err = pipeline.NewTrainer(r.device, views, init, r.capture.SceneScale, r.config)
	return err
}

// firstLine says what is trained on what.
func (r *trainRun) firstLine() string {
	images := count(len(r.capture.Cameras), "image")
	if len(r.test) > 0 {
		images += fmt.Sprintf(" (%d held out)", len(r.test))
	}
	return fmt.Sprintf("%s, %s of %s, %s, %s planned of %s", r.device.Name(), images, resolution(r.capture.Cameras),
		count(len(r.capture.Points), "point"), bytesText(r.trainer.PlannedBytes()), bytesText(r.device.Budget()))
}

// flushNotes prints the warnings so far, each once.
func (r *trainRun) flushNotes() {
	for i, n := range r.notes {
		if !slices.Contains(r.notes[:i], n) {
			r.app.warn(n)
		}
	}
	r.notes = nil
}

func (r *trainRun) close() error {
	var errs []error
	if r.saver != nil && r.saver.from != nil {
		errs = append(errs, r.saver.from.Close())
	}
	if r.trainer != nil {
		errs = append(errs, r.trainer.Close())
	}
	if r.device != nil {
		errs = append(errs, closeDevice(r.device))
	}
	return errors.Join(errs...)
}

// closeDevice closes d. What the validation layer said, if VKSPLAT_VALIDATE=1 turned it on, is an error.
func closeDevice(d *pipeline.Device) error {
	err := d.Close()
	if said := d.ValidationMessages(); len(said) > 0 {
		err = errors.Join(err, fmt.Errorf("the validation layer said: %s", strings.Join(said, "\n")))
	}
	return err
}

// resolution prints the size of the photos, or the range of sizes.
func resolution(cams []scene.Camera) string {
	if len(cams) == 0 {
		return "0x0"
	}
	area := func(a, b scene.Camera) int { return a.Width*a.Height - b.Width*b.Height }
	small, large := slices.MinFunc(cams, area), slices.MaxFunc(cams, area)
	text := fmt.Sprintf("%dx%d", large.Width, large.Height)
	if small.Width != large.Width || small.Height != large.Height {
		text = fmt.Sprintf("%dx%d to %s", small.Width, small.Height, text)
	}
	return text
}

// keep returns 0 to n-1 without those in drop, which ascends.
func keep(n int, drop []int) []int {
	ids := make([]int, 0, n)
	for i := range n {
		if _, found := slices.BinarySearch(drop, i); !found {
			ids = append(ids, i)
		}
	}
	return ids
}

// pick returns the elements of list with the given indices.
func pick[T any](list []T, ids []int) []T {
	out := make([]T, len(ids))
	for i, id := range ids {
		out[i] = list[id]
	}
	return out
}
