package train

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/internal/run/report"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/scene"
	"vksplat/scene/depth"
	"vksplat/scene/fingerprint"
	"vksplat/scene/initial"
	"vksplat/scene/inspect"
	"vksplat/scene/ply"
)

// Run is one run of train: what was asked for and what has been read and opened.
type Run struct {
	*Options
	Console *cli.Console
	Capture *scene.Capture  // in the training frame from prepare on; its points are those of training until then
	origin  [3]float64      // subtracted from written coordinates
	cameras []scene.Camera  // to be written: in the capture's own frame, less the origin
	points  []ply.FilePoint // likewise
	nPoints int             // of capture, those left out aside; it gives them up when the splats are made
	photos  *photos.Cache   // of the cameras
	Train   []int           // cameras of Capture that are trained on
	Test    []int           // held-out ones
	// names of those of a run that goes on, by its record; none: flags and files choose them
	recorded    []string
	formerSplit bool                     // photos that cannot be read do not count, as earlier versions had it
	nearestTo   map[string]scene.Nearest // see nearest

	training *scene.Capture // what training knows: Capture without held-out cameras, in the same frame
	// of the cameras in training, nil where none are compared, and after equip
	knownDepths  depth.Known
	depthHash    [sha256.Size]byte // of them
	knownNormals []scene.NormalMap // likewise
	normalHash   [sha256.Size]byte // of them
	anchors      [][]scene.Anchor  // of the poses of the cameras in training, likewise
	anchorHash   [sha256.Size]byte // of them
	motionHash   [sha256.Size]byte // of the motions of Capture.Cameras, with --native-lens alone
	takers       map[string]int    // numbers of the cameras that took the photos, by cameraName
	shell        float64           // radius of the far shell that training began with, 0 without
	depths       []scene.Depths    // of the points that each camera in training sees
	device       *pipeline.Device
	others       []*pipeline.Device // that train with it
	chosen       string             // why these, with --devices auto
	Trainer      *pipeline.Trainer
	rec          *record
	plan         *pipeline.Plan
	follows      bool                     // config.Splats was chosen for the capture
	splatsFor    func(factor float64) int // splats that follow the capture
	notes        []cli.Notice             // that wait for the first line
	thumbs       *report.Thumbnails       // of the last evaluation of this process
	written      string                   // the model that this process wrote last, "" for none

	stage      atomic.Int32 // a stage
	limit      timeLimit
	giveUp     context.CancelFunc // ends the training, as Ctrl-C does; nil before it begins
	unmeasured bool               // the user stopped while the held-out photos were measured
	resplit    bool               // the run held out other photos before it was resumed

	saver       *saver
	hashing     *fingerprint.Fingerprint // nil without checkpoints
	fingerprint string                   // of the capture, "" until a checkpoint needs it
	parts       checkpoint.PartsRecord   // of what that is made
	altered     bool                     // photos were changed under the run, which has been told

	predicted *prediction // of a dry run with a time limit, else nil

	Live    Viewer   // nil without one
	preview *preview // nil without --preview
}

// Do trains, saves and evaluates. The error of an interrupted run is fault.ErrInterrupted; its model and scores are
// complete all the same. A run that its time limit ended has no error: output.Stats.Interrupted tells. seen, if not
// nil, gets every held-out photo and its render.
func Do(console *cli.Console, o *Options, seen func(photo scene.Image, render []float32)) (st *output.Stats,
	err error) {
	events := console.Stdout
	if o.Progress == meter.JSON { // which is alone on standard output
		console = console.ToStderr()
	}
	r := &Run{Options: o, Console: console}
	r.startClock()
	release, err := r.claim()
	if err != nil {
		return nil, err
	}
	defer release()
	defer func() {
		if r.Live != nil {
			r.Live.Over(err)
		}
		// on a device that is lost nothing ends in order
		if closing := r.Close(); !errors.Is(err, pipeline.ErrDeviceLost) {
			err = errors.Join(err, closing)
		}
		err = errors.Join(err, r.saver.undo())
	}()
	defer r.FlushNotes()
	defer func() {
		if errors.Is(err, context.Canceled) {
			err = r.interruptedBy()
		}
		err = r.lostHint(r.divergedHint(remedy.Memory(err)))
	}()
	ctx, stop := console.Interruptible(r.stops)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.giveUp = cancel
	if o.NewViewer != nil {
		if r.Live, err = o.NewViewer(r, cancel); err != nil {
			return nil, err
		}
	}
	if err := r.Begin(ctx); err != nil {
		return nil, remedy.Ceiling(err, o.Device)
	}
	if o.DryRun {
		return nil, r.showPlan()
	}
	console.Sayf("%s\n", r.FirstLine())
	if text := compiledText(r.device.Pipelines()); text != "" {
		console.Printf("%s\n", text)
	}
	r.FlushNotes()
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
func (r *Run) conclude(ctx context.Context, interrupted bool,
	seen func(photo scene.Image, render []float32)) (st *output.Stats, err error) {
	saveErr := r.saver.end(interrupted)
	if errors.Is(saveErr, pipeline.ErrDiverged) {
		return nil, saveErr // there is no model to write or measure
	}
	if interrupted && r.saver.staged && saveErr == nil { // else the model is all that is left of the training
		return nil, r.saver.givenUp()
	}
	st, err = r.finish(ctx, interrupted, seen)
	r.saver.dropDemoPicture()
	r.noteOverrun()
	if saveErr = r.saver.ended(); errors.Is(saveErr, pipeline.ErrDiverged) {
		return nil, saveErr
	}
	if err == nil {
		err = r.stoppedError(interrupted, saveErr == nil)
	}
	return st, r.fullHint(errors.Join(err, saveErr))
}

// show begins to tell how the run goes.
func (r *Run) show(events io.Writer) (err error) {
	if err := r.saver.stage(); err != nil {
		return err
	}
	if err := r.saver.list(); err != nil {
		return err
	}
	if r.rec, err = openRecord(r, events); err != nil {
		return err
	}
	r.preview.begin()
	if r.Live == nil {
		return nil
	}
	return r.Live.Serve()
}

// divergedHint adds to the error of a run that went astray the last checkpoint from before.
func (r *Run) divergedHint(err error) error {
	if !errors.Is(err, pipeline.ErrDiverged) || r.saver == nil || r.saver.newest() == "" {
		return err
	}
	return fault.WithHint(err, "lower the learning rates, then start over or resume from the last checkpoint before it "+
		"diverged: "+fault.Command("train SCENE -m OUT --resume="+cli.Quoted(r.saver.newest())+" --accept-changes"))
}

// Begin does everything that comes before the first line.
func (r *Run) Begin(ctx context.Context) (err error) {
	r.startClock()
	if r.preview, err = newPreview(r); err != nil {
		return err
	}
	if r.formerNamed {
		r.noteLater(fmt.Sprintf("the preset %s is called %s now; the next version will not know it", formerPreset,
			defaultPreset))
	}
	r.saver = newSaver(r)
	if err := r.saver.find(); err != nil {
		return err
	}
	if err := r.adopt(); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	r.noteSlow()
	return r.prepare(ctx)
}

// run trains, and measures on the way where that is asked for. Its error may be
// that of ctx.
func (r *Run) run(ctx context.Context) error {
	if err := r.saver.begin(); err != nil {
		return err
	}
	r.Console.LimitHeap(r.plan.HeapLimit()) // the driver has compiled the kernels
	for _, stop := range r.EvalAt {
		if stop >= r.Config.Iterations || stop < r.Trainer.Step() {
			continue
		}
		if err := r.saver.run(ctx, stop); err != nil {
			return err
		}
		// A disk that is full is no reason to stop training: room may be made.
		if err := r.measureAt(ctx, stop); errors.Is(err, fault.ErrTryAgain) {
			r.Console.Warn(fmt.Sprintf("step %d is not measured: %v", stop, err))
		} else if err != nil {
			return err
		}
	}
	return r.saver.run(ctx, r.Config.Iterations)
}

// measureAt measures on the way.
func (r *Run) measureAt(ctx context.Context, step int) error {
	views, err := r.measure(ctx, step, nil)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return nil
	}
	s := output.Summarise(views)
	if r.Live != nil {
		r.Live.Measured(step, s.PSNR)
	}
	r.Console.Sayf("step %d: held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d)\n", step, s.PSNR, s.SSIM,
		len(views))
	return r.writeReport(r.stats(false, views))
}

// runTo trains up to a step. after is called after every step.
func (r *Run) runTo(ctx context.Context, step int, after func()) error {
	r.rec.begin()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := r.Trainer.RunTo(ctx, step, func(p pipeline.Progress) {
		r.saver.startOver()
		if r.rec.step(p); r.rec.blind != nil {
			stop()
		}
		r.tellStep(p)
		r.preview.stepped()
		after()
		if !p.More && r.timeIsUp(p.Level) {
			r.Console.Note("time limit of " + r.TimeLimit.text() + ": " + r.stops())
			r.giveUp()
		}
	})
	r.rec.end()
	if r.rec.blind != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return r.rec.blind
	}
	return err
}

// open reads the capture and opens the device: quick checks before slow ones.
func (r *Run) open(ctx context.Context) error {
	if err := models.LimitHeap(r.Console, r.Options.Device); err != nil {
		return err
	}
	if err := r.loadCapture(); err != nil {
		return err
	}
	c := r.Capture
	if err := r.apart(); err != nil {
		return err
	}
	r.warnIdle()
	r.followCapture()
	if !r.limitChooses() {
		r.warnSchedule()
	}
	if !r.DryRun { // once more: the last step may be another one
		if err := errors.Join(r.refuseFolders(), r.saver.refuseForeign()); err != nil {
			return err
		}
	}
	if c.Synthetic && !r.BackgroundGiven {
		r.Config.Background = [3]float32{1, 1, 1} // what is made for these captures is made for white
	}
	if err := r.saver.checkConfig(); err != nil {
		return err
	}
	if err := initial.Check(r.training, r.initOptions()); err != nil {
		return err
	}
	report, err := inspect.Capture(ctx, c,
		inspect.Options{Unused: r.Init.Kind == initial.InitRandom || r.Init.Kind == initial.InitPLY})
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
			r.detailLater(text)
		case inspect.Note(w):
			r.noteLater(text)
		default:
			r.warnLater(text)
		}
	}
	if err := report.Fatal(); err != nil {
		return err
	}
	if err := r.startFingerprint(ctx); err != nil {
		return err
	}
	return r.openDevices()
}

// prepare keeps what is to be written of the capture, moves it to the training
// frame, and hands everything to the device.
func (r *Run) prepare(ctx context.Context) (err error) {
	if r.origin, err = r.Capture.Origin(string(r.Options.Origin)); err != nil {
		return err
	}
	if near, err := r.Capture.Origin("auto"); err == nil && r.Options.Origin == "keep" && near != ([3]float64{}) {
		r.noteLater(fault.Setting("origin") + " keep writes coordinates this far from zero in float32, which is too " +
			"coarse for them: the file shows less than the scores say")
	}
	r.cameras, r.points = captured.Moved(r.Capture, r.origin)
	r.Capture.Points = nil // training moves them
	if from := r.saver.from; from != nil {
		r.training.NormaliseTo(from.Header.Frame.Frame(), from.Header.Frame.SceneScale)
	} else {
		r.training.Normalise()
	}
	r.Capture.NormaliseTo(r.training.Frame, r.training.SceneScale)
	r.addDepthPoints()
	r.clear()
	if err := r.addSky(ctx); err != nil {
		return err
	}
	if !r.limitChooses() { // else the last step is not known yet
		if err := r.refuseForeignPictures(); err != nil {
			return err
		}
	}
	return r.equip(ctx)
}

// FirstLine says what is trained on what.
func (r *Run) FirstLine() string {
	images := cli.Count(len(r.Capture.Cameras), "image")
	if len(r.Test) > 0 {
		images += fmt.Sprintf(" (%d held out)", len(r.Test))
	}
	return fmt.Sprintf("%s, %s of %s, %s, %s planned of %s", r.deviceNames(), images,
		captured.Resolution(r.Capture.Cameras)+captured.FirstSteps(&r.Config),
		cli.Count(r.nPoints, "point"), pipeline.BytesText(r.Trainer.MemoryStats().TotalBytes),
		pipeline.BytesText(r.deviceBudget()))
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
func (r *Run) warnLater(text string) {
	r.notes = append(r.notes, cli.Notice{Kind: cli.KindWarning, Text: text})
}
func (r *Run) noteLater(text string) {
	r.notes = append(r.notes, cli.Notice{Kind: cli.KindNote, Text: text})
}

// detailLater is noteLater of what most users need not know.
func (r *Run) detailLater(text string) {
	r.notes = append(r.notes, cli.Notice{Kind: cli.KindDetail, Text: text})
}

// FlushNotes prints what waits, each line once.
func (r *Run) FlushNotes() {
	r.Console.Verbose = r.Verbose
	for i, n := range r.notes {
		if !slices.Contains(r.notes[:i], n) {
			r.Console.Tell(n)
		}
	}
	r.notes = nil
}

func (r *Run) Close() error {
	var errs []error
	if r.Live != nil {
		errs = append(errs, r.Live.Close())
	}
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
	if r.Trainer != nil {
		errs = append(errs, r.Trainer.Close())
	}
	if r.photos != nil {
		errs = append(errs, r.photos.Close())
	}
	if r.hashing != nil {
		r.hashing.Close()
	}
	if r.device != nil && r.device != r.Opened {
		errs = append(errs, models.CloseDevice(r.device))
	}
	for _, d := range r.others {
		errs = append(errs, models.CloseDevice(d))
	}
	return errors.Join(errs...)
}
