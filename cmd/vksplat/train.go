package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/run/remedy"
	"vksplat/internal/run/report"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/fingerprint"
	"vksplat/scene/initial"
	"vksplat/scene/inspect"
	"vksplat/scene/ply"
)

func trainCommand(a *cli.Console) *cobra.Command {
	o := newTrainOptions()
	cmd := &cobra.Command{
		Use:   "train SCENE -m OUT",
		Short: "Train a model from photographs",
		Long: "Train a model from the photographs of SCENE, a folder that COLMAP or a\n" +
			"compatible program wrote. OUT gets the model as\n" +
			"point_cloud/iteration_N/point_cloud.ply, which viewers read, and with --eval the\n" +
			"scores and pictures of the held-out photos. Ctrl-C stops after the step, saves\n" +
			"and evaluates; while it evaluates, it stops after the picture. A second one,\n" +
			"half a second later or more, aborts at once and saves nothing. SCENE may also be\n" +
			"the folder of a plan that vksplat partition wrote: its blocks are trained one\n" +
			"after the other and merged.",
		Example: "  vksplat train my_scene -m out --eval\n  vksplat train my_scene -m out --iterations 7000 --downscale 2",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.helpAll || o.printConfig && len(args) == 0 {
				return nil
			}
			return one("SCENE folder")(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	table, fs := o.table(), cmd.Flags()
	register(fs, table)
	o.given = fs.Changed
	offerValues(a, cmd, table)
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { trainHelp(a, cmd, o.helpAll) })
	cmd.RunE = runs(a, func(args []string) error {
		if o.helpAll {
			trainHelp(a, cmd, true)
			return nil
		}
		o.passedOn = passedOnFlags(fs) // before --steps-scaler changes them
		if err := o.resolve(fs.Changed); err != nil {
			return err
		}
		if o.printConfig {
			printSettings(a, o)
			return nil
		}
		if plans.IsPlan(args[0]) {
			return trainPlan(a, o, fs, args[0])
		}
		return trainScene(a, o, args[0])
	})
	return cmd
}

// trainRun is one run of train: what was asked for and what has been read and opened.
type trainRun struct {
	*trainOptions
	app     *cli.Console
	capture *scene.Capture       // in the training frame from openScene on
	origin  [3]float64           // subtracted from written coordinates
	cameras []scene.Camera       // to be written: in the capture's own frame, less the origin
	points  []ply.FilePoint      // likewise
	nPoints int                  // of capture, those left out aside; it gives them up when the splats are made
	photos  *pipeline.PhotoCache // of the cameras
	train   []int                // cameras of capture that are trained on
	test    []int                // held-out ones
	depths  []scene.Depths       // of the points that each camera sees, of those in train once prepared
	device  *pipeline.Device
	others  []*pipeline.Device // that train with it
	chosen  string             // why these, with --devices auto
	trainer *pipeline.Trainer
	rec     *record
	plan    *pipeline.Plan
	follows bool               // config.Splats was chosen for the capture
	notes   []cli.Notice       // that wait for the first line
	thumbs  *report.Thumbnails // of the last evaluation of this process
	written string             // the model that this process wrote last, "" for none

	stage      atomic.Int32 // a stage
	unmeasured bool         // the user stopped while the held-out photos were measured

	saver       *saver
	hashing     *fingerprint.Fingerprint // nil without checkpoints
	fingerprint string                   // of the capture, "" until a checkpoint needs it
	altered     bool                     // photos were changed under the run, which has been told

	live    *liveTraining // nil without --viewer
	preview *preview      // nil without --preview
}

// runTrain trains, saves and evaluates. The error of an interrupted run is
// errInterrupted; its model and scores are complete all the same. seen, if not
// nil, gets every held-out photo and its render.
func runTrain(a *cli.Console, o *trainOptions, seen func(photo scene.Image, render []float32)) (st *output.Stats, err error) {
	events := a.Stdout
	if o.progress == meter.JSON { // which is alone on standard output
		a = a.ToStderr()
	}
	r := &trainRun{trainOptions: o, app: a}
	release, err := r.claim()
	if err != nil {
		return nil, err
	}
	defer release()
	defer func() {
		r.live.over(err)
		if closing := r.close(); !errors.Is(err, pipeline.ErrDeviceLost) { // on a device that is lost nothing ends in order
			err = errors.Join(err, closing)
		}
		err = errors.Join(err, r.saver.undo())
	}()
	defer r.flushNotes()
	defer func() {
		if errors.Is(err, context.Canceled) {
			err = fault.ErrInterrupted
		}
		err = r.lostHint(r.divergedHint(remedy.Memory(err)))
	}()
	ctx, stop := a.Interruptible(r.stops)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.live, err = newLiveTraining(r, cancel); err != nil {
		return nil, err
	}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	if o.dryRun {
		return nil, r.showPlan()
	}
	a.Printf("%s\n", r.firstLine())
	if text := compiledText(r.device.Pipelines()); text != "" {
		a.Printf("%s\n", text)
	}
	r.flushNotes()
	if err := r.show(events); err != nil {
		return nil, err
	}
	interrupted, err := r.stopped(ctx, r.run(ctx))
	if err != nil {
		return nil, err
	}
	return r.conclude(ctx, interrupted, seen)
}

// conclude saves what was trained and does what comes after.
func (r *trainRun) conclude(ctx context.Context, interrupted bool, seen func(photo scene.Image, render []float32)) (st *output.Stats, err error) {
	saveErr := r.saver.end(interrupted)
	if errors.Is(saveErr, pipeline.ErrDiverged) {
		return nil, saveErr // there is no model to write or measure
	}
	if interrupted && r.saver.aside && saveErr == nil { // else the model is all that is left of the training
		return nil, r.saver.givenUp()
	}
	if st, err = r.finish(ctx, interrupted, seen); err == nil {
		err = r.stoppedError(interrupted, saveErr == nil)
	}
	return st, r.fullHint(errors.Join(err, saveErr))
}

// show begins to tell how the run goes.
func (r *trainRun) show(events io.Writer) (err error) {
	if err := r.saver.putAside(r.saver.after()); err != nil {
		return err
	}
	if err := r.saver.list(); err != nil {
		return err
	}
	if r.rec, err = openRecord(r, events); err != nil {
		return err
	}
	r.preview.begin()
	return r.live.serve()
}

// divergedHint adds to the error of a run that went astray the last checkpoint from before.
func (r *trainRun) divergedHint(err error) error {
	if !errors.Is(err, pipeline.ErrDiverged) || r.saver == nil || r.saver.newest() == "" {
		return err
	}
	return &fault.HintedError{Err: err, Hint: fmt.Sprintf("lower the learning rates; the last checkpoint before that is %s: go on from it with --resume=FILE --accept-changes, or start anew", r.saver.newest())}
}

// begin does everything that comes before the first line.
func (r *trainRun) begin(ctx context.Context) (err error) {
	if r.preview, err = newPreview(r); err != nil {
		return err
	}
	r.saver = newSaver(r)
	if err := r.saver.find(); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	return r.prepare(ctx)
}

// run trains, and measures on the way where that is asked for. Its error may be
// that of ctx.
func (r *trainRun) run(ctx context.Context) error {
	if err := r.saver.begin(); err != nil {
		return err
	}
	r.plan.Limit() // the driver has compiled the kernels
	for _, stop := range r.evalAt {
		if stop >= r.config.Iterations || stop < r.trainer.Step() {
			continue
		}
		if err := r.saver.run(ctx, stop); err != nil {
			return err
		}
		// A disk that is full is no reason to stop training: room may be made.
		if err := r.measureAt(ctx, stop); errors.Is(err, fault.ErrTryAgain) {
			r.app.Warn(fmt.Sprintf("step %d is not measured: %v", stop, err))
		} else if err != nil {
			return err
		}
	}
	return r.saver.run(ctx, r.config.Iterations)
}

// measureAt measures on the way.
func (r *trainRun) measureAt(ctx context.Context, step int) error {
	views, err := r.measure(ctx, step, nil)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return nil
	}
	s := output.Summarise(views)
	r.live.measured(step, s.PSNR)
	r.app.Printf("step %d: held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d)\n", step, s.PSNR, s.SSIM, len(views))
	return r.writeReport(r.stats(false, views))
}

// runTo trains up to a step. after is called after every step.
func (r *trainRun) runTo(ctx context.Context, step int, after func()) error {
	r.rec.begin()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := r.trainer.RunTo(ctx, step, func(p pipeline.Progress) {
		r.saver.startOver()
		if r.rec.step(p); r.rec.blind != nil {
			stop()
		}
		r.live.step(p)
		r.preview.stepped()
		after()
	})
	r.rec.end()
	if r.rec.blind != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return r.rec.blind
	}
	return err
}

// open reads the capture and opens the device: quick checks before slow ones.
func (r *trainRun) open(ctx context.Context) error {
	if err := pipeline.LimitHeap(r.trainOptions.device); err != nil {
		return err
	}
	c, err := r.loadCapture()
	if err != nil {
		return err
	}
	r.capture = c
	if err := captured.HoldOut(c, r.testList); err != nil {
		return err
	}
	if err := r.apart(); err != nil {
		return err
	}
	r.warnIdle()
	r.warnSmall()
	r.followCapture()
	if c.Synthetic && !r.backgroundGiven {
		r.config.Background = [3]float32{1, 1, 1} // what is made for these captures is made for white
	}
	if err := r.saver.checkConfig(); err != nil {
		return err
	}
	if err := initial.Check(c, r.initOptions()); err != nil {
		return err
	}
	report, err := inspect.Capture(ctx, c, inspect.Options{Unused: r.init.Kind == initial.InitRandom || r.init.Kind == initial.InitPLY})
	if err != nil {
		return err
	}
	for _, w := range report.Warnings() {
		text := w.String()
		if w.Remedy != "" {
			text += " (" + w.Remedy + ")"
		}
		if inspect.Note(w) {
			r.noteLater(text)
		} else {
			r.warnLater(text)
		}
	}
	if err := report.Fatal(); err != nil {
		return err
	}
	if err := r.startFingerprint(ctx); err != nil {
		return err
	}
	r.warnBeyond("eval-at", r.evalAt)
	r.warnBeyond("save-at", r.checkpoints.saveAt)
	return r.openDevices()
}

// prepare keeps what is to be written of the capture, moves it to the training
// frame, and hands everything to the device.
func (r *trainRun) prepare(ctx context.Context) (err error) {
	if r.origin, err = r.capture.Origin(string(r.trainOptions.origin)); err != nil {
		return err
	}
	if near, err := r.capture.Origin("auto"); err == nil && r.trainOptions.origin == "keep" && near != ([3]float64{}) {
		r.noteLater("--origin keep writes coordinates this far from zero in float32, which is too coarse for them: the file shows less than the scores say")
	}
	r.cameras, r.points = captured.Moved(r.capture, r.origin)
	if from := r.saver.from; from != nil {
		r.capture.NormaliseTo(from.Header.Frame.Frame(), from.Header.Frame.SceneScale)
	} else {
		r.capture.Normalise()
	}
	every := 0
	if r.eval {
		every = r.testEvery
	}
	r.train, r.test = r.capture.Split(every)
	r.clear()
	if err := r.refuseForeignPictures(); err != nil {
		return err
	}
	return r.equip(ctx)
}

// firstLine says what is trained on what.
func (r *trainRun) firstLine() string {
	images := cli.Count(len(r.capture.Cameras), "image")
	if len(r.test) > 0 {
		images += fmt.Sprintf(" (%d held out)", len(r.test))
	}
	return fmt.Sprintf("%s, %s of %s, %s, %s planned of %s", r.deviceNames(), images, captured.Resolution(r.capture.Cameras)+captured.FirstSteps(&r.config),
		cli.Count(r.nPoints, "point"), pipeline.BytesText(r.trainer.PlannedBytes()), pipeline.BytesText(r.deviceBudget()))
}

// slowCompile is after how many seconds the user is told what they were spent on.
const slowCompile = 1

// compiledText says that compiling n kernels took long, and whether it will again; "" where it did not.
func compiledText(n int, seconds float64, cached bool) string {
	switch {
	case seconds < slowCompile:
		return ""
	case cached:
		return fmt.Sprintf("compiling %s took %.1f s", cli.Count(n, "kernel"), seconds)
	}
	return fmt.Sprintf("compiling %s took %.1f s; they are kept for the next run", cli.Count(n, "kernel"), seconds)
}

// warnLater and noteLater tell the user something below the first line.
func (r *trainRun) warnLater(text string) {
	r.notes = append(r.notes, cli.Notice{Kind: cli.KindWarning, Text: text})
}
func (r *trainRun) noteLater(text string) {
	r.notes = append(r.notes, cli.Notice{Kind: cli.KindNote, Text: text})
}

// flushNotes prints what waits, each line once.
func (r *trainRun) flushNotes() {
	for i, n := range r.notes {
		if !slices.Contains(r.notes[:i], n) {
			r.app.Tell(n)
		}
	}
	r.notes = nil
}

func (r *trainRun) close() error {
	errs := []error{r.live.close()}
	r.preview.close()
	if r.rec != nil {
		errs = append(errs, r.rec.close())
	}
	if r.saver != nil {
		errs = append(errs, r.saver.unlist())
	}
	if r.saver != nil && r.saver.from != nil {
		errs = append(errs, r.saver.from.Close())
	}
	if r.trainer != nil {
		errs = append(errs, r.trainer.Close())
	}
	if r.photos != nil {
		errs = append(errs, r.photos.Close())
	}
	if r.hashing != nil {
		r.hashing.Close()
	}
	if r.device != nil {
		errs = append(errs, models.CloseDevice(r.device))
	}
	for _, d := range r.others {
		errs = append(errs, models.CloseDevice(d))
	}
	return errors.Join(errs...)
}
