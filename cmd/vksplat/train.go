package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"vksplat/pipeline"
	"vksplat/scene"
)

// heldOutEvery is the spacing of held-out photos, as in the papers.
const heldOutEvery = 8

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
	capture *scene.Capture       // in the training frame from openScene on
	origin  [3]float64           // subtracted from written coordinates
	cameras []scene.Camera       // to be written: in the capture's own frame, less the origin
	points  []scene.Point        // likewise
	photos  *pipeline.PhotoCache // of the cameras
	train   []int                // cameras of capture that are trained on
	test    []int                // held-out ones
	device  *pipeline.Device
	trainer *pipeline.Trainer
	plan    *pipeline.Plan
	notes   []string   // warnings that wait for the first line
	warnMu  sync.Mutex // orders warnings
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
	if !o.claimed && !o.dryRun {
		release, err := claimFolder(o.out, true)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if o.dryRun {
		return nil, a.printPlan(r.plan, o.planJSON)
	}
	a.printf("%s\n", r.firstLine())
	r.flushNotes()

	show := newProgress(a.stdout, o.config.Iterations)
	runErr := r.trainer.Run(ctx, show.update)
	show.finish()
	interrupted := runErr != nil && ctx.Err() != nil && errors.Is(runErr, ctx.Err())
	if runErr != nil && !interrupted {
		return nil, runErr
	}
	if interrupted && r.trainer.Step() == 0 {
		return nil, fmt.Errorf("%w before the first step; nothing is saved", errInterrupted)
	}
	st, err = r.finish(interrupted, seen)
	if err == nil && interrupted {
		err = fmt.Errorf("%w after step %d of %d; the model so far is saved", errInterrupted, st.Step, o.config.Iterations)
	}
	return st, err
}

// open reads the capture and opens the device: quick checks before slow ones.
func (r *trainRun) open() error {
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
	return nil
}

// prepare keeps what is to be written of the capture, moves it to the training
// frame, makes the plan and hands everything to the device.
func (r *trainRun) prepare(ctx context.Context) (err error) {
	if r.origin, err = r.capture.Origin(string(r.trainOptions.origin)); err != nil {
		return err
	}
	r.cameras, r.points = moved(r.capture, r.origin)
	r.capture.Normalise()
	every := 0
	if r.eval {
		every = heldOutEvery
	}
	r.train, r.test = r.capture.Split(every)
	cams := pick(r.capture.Cameras, r.train)
	// Degree 0: the rest of the colours is zero, and the model makes room for it.
	init := scene.Initialise(r.capture.Points, r.config.Seed, 0)
	options := pipeline.TrainerOptions{
		Pictures: pick(r.capture.Cameras, r.test), Decode: r.capture.Cameras, PhotoBytes: r.photoVRAM, Strict: r.load.strict, Warn: r.warnNow,
		HeldBytes: int64(len(r.points)) * (2*pointBytes + splatBytes),
	}
	plan, err := r.device.Plan(cams, init.N, r.config, options)
	if err != nil {
		return err
	}
	r.plan = plan
	if r.dryRun {
		return nil
	}
	plan.Limit()
	if r.load.strict {
		if err := r.decodable(ctx); err != nil {
			return err
		}
	}
	cache := plan.Host.PhotoCache(cams)
	cache.SpillDir, cache.SpillBytes, cache.Warn = r.imageCache, r.imageCacheBytes, r.warnNow
	if cache.Bytes, err = r.cacheBytes(cache.Bytes); err != nil {
		return err
	}
	if r.photos, err = pipeline.NewPhotoCache(cache); err != nil {
		return err
	}
	r.trainer, err = pipeline.NewTrainer(r.device, cams, r.photos, init, r.capture.SceneScale, r.config, options)
	return err
}

// decodable decodes every photo once, so that --strict finds out before the
// training and not in the middle of it.
func (r *trainRun) decodable(ctx context.Context) error {
	photos, err := pipeline.NewPhotoCache(r.plan.Host.PhotoCache(r.capture.Cameras))
	if err != nil {
		return err
	}
	order := make([]int, len(r.capture.Cameras))
	for i := range order {
		order[i] = i
	}
	photos.Expect(order)
	for i := 0; i < len(order) && err == nil; i++ {
		if _, err = photos.Photo(ctx, i); err == nil {
			photos.Release(i)
		}
	}
	return errors.Join(err, photos.Close())
}

// What points and the splats made from them take in RAM, in bytes.
const (
	pointBytes = 32
	splatBytes = 4 * (3 + 4 + 3 + 1 + 3)
)

// cacheBytes returns the bytes of the photos' cache: what was planned or asked for.
func (r *trainRun) cacheBytes(planned int64) (int64, error) {
	if r.photoRAM == 0 {
		return planned, nil
	}
	if r.photoRAM > planned {
		return 0, usagef("give less, or raise --max-ram", "flag --photo-ram: %s, the plan has %s for decoded photos", bytesText(r.photoRAM), bytesText(planned))
	}
	return r.photoRAM, nil
}

// warnNow prints a warning while training runs. Several goroutines may call it.
func (r *trainRun) warnNow(text string) {
	r.warnMu.Lock()
	defer r.warnMu.Unlock()
	r.app.warn(text)
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
	if r.trainer != nil {
		errs = append(errs, r.trainer.Close())
	}
	if r.photos != nil {
		errs = append(errs, r.photos.Close())
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

// pick returns the elements of list with the given indices.
func pick[T any](list []T, ids []int) []T {
	out := make([]T, len(ids))
	for i, id := range ids {
		out[i] = list[id]
	}
	return out
}
