package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/pipeline"
	"vksplat/scene/results"
)

// Run is one run of train: what was asked for and what has been read and opened. Its parts know nothing of it.
type Run struct {
	*Options
	*notes
	Console *cli.Console
	dataset
	machine
	control   control
	observers []Observer
	id        identity
	past      *history
	sight     *sight
	prev      previous
	place     place
	saver     *saver
	setup     setup
	limit     limiter
	out       outputs
	ending    ending

	done       int     // the step up to which everything is done
	stepped    Stepped // of the present step
	failure    error   // why training ends
	unmeasured bool    // the user stopped while the held-out photos were measured
	begun      bool    // a step was trained or a file written
}

// NewRun returns a run that has not begun.
func NewRun(o *Options, console *cli.Console) *Run {
	n := &notes{console: console}
	r := &Run{Options: o, notes: n, Console: console, dataset: dataset{Options: o, notes: n},
		machine: machine{Options: o, notes: n}}
	r.known = knowns{Options: o, notes: n}
	r.id = identity{notes: n, known: &r.known}
	r.prev = previous{Options: o, notes: n, data: &r.dataset, dir: filepath.Join(o.Out, output.CheckpointFolder)}
	r.place = place{Options: o, notes: n, prev: &r.prev, emit: r.emit}
	r.saver = newSaver(o, console, &r.place, &r.id, r)
	r.setup = setup{o, n, &r.dataset, &r.machine, &r.prev}
	r.limit = limiter{setup: &r.setup, place: &r.place, asked: func(saves cli.Steps) { r.saver.asked = saves }}
	r.out = outputs{Options: o, notes: n, dataset: &r.dataset, machine: &r.machine, prev: &r.prev, place: &r.place,
		watch: &r.control.watch, begin: r.begin, history: r.saver.history}
	r.ending = ending{o, n, &r.machine, &r.prev, r.saver, &r.limit, &r.out}
	r.control.saveNow, r.control.stop = r.saver.saveNow, func() {}
	return r
}

// Do trains, saves and evaluates. The error of an interrupted run is fault.ErrInterrupted; its model and scores are
// complete all the same. A run that its time limit ended has no error: output.Stats.Interrupted says so.
func Do(console *cli.Console, o *Options) (st *output.Stats, err error) {
	events := console.Stdout
	if o.Progress == meter.JSON { // which is alone on standard output
		console = console.ToStderr()
	}
	r := NewRun(o, console)
	r.limit.startClock()
	release, err := r.place.claim()
	if err != nil {
		return nil, err
	}
	defer release()
	defer func() {
		err = errors.Join(err, r.emit(&Ended{err, r.out.written, r.limit.then}))
		// on a device that is lost nothing ends in order
		if closing := r.Close(); !errors.Is(err, pipeline.ErrDeviceLost) {
			err = errors.Join(err, closing)
		}
		err = errors.Join(err, r.place.undo())
	}()
	defer r.FlushNotes()
	defer func() {
		if errors.Is(err, context.Canceled) {
			err = r.limit.interruptedBy()
		}
		err = r.ending.lostHint(r.ending.divergedHint(remedy.Memory(err)))
	}()
	ctx, release2 := console.Interruptible(r.control.stops)
	defer release2()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.control.stop = cancel
	if err := r.observe(); err != nil {
		return nil, err
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
	if err := r.start(events); err != nil {
		return nil, err
	}
	interrupted, err := r.stopped(ctx, r.train(ctx))
	if err != nil {
		return nil, err
	}
	return r.conclude(ctx, interrupted)
}

// conclude saves what was trained and does what comes after.
func (r *Run) conclude(ctx context.Context, interrupted bool) (st *output.Stats, err error) {
	saveErr := r.saver.end(interrupted, !r.limit.over && tooEarly(&r.id, &r.control.watch))
	if errors.Is(saveErr, pipeline.ErrDiverged) {
		return nil, saveErr // there is no model to write or measure
	}
	if interrupted && r.place.staged && saveErr == nil { // else the model is all that is left of the training
		return nil, r.ending.givenUp()
	}
	st, err = r.finish(ctx, interrupted)
	r.place.dropDemoPicture(r.Trainer.Step())
	r.limit.noteOverrun()
	if saveErr = r.saver.ended(); errors.Is(saveErr, pipeline.ErrDiverged) {
		return nil, saveErr
	}
	if err == nil {
		err = r.ending.stoppedError(interrupted, r.unmeasured, saveErr == nil)
	}
	return st, r.ending.fullHint(errors.Join(err, saveErr))
}

// start has the run write beside an earlier one that it replaces, and shows the run to its observers. events is
// standard output.
func (r *Run) start(events io.Writer) (err error) {
	if err := r.place.stage(); err != nil {
		return err
	}
	if err := r.place.list(); err != nil {
		return err
	}
	e, err := r.Started(events)
	if err != nil {
		return err
	}
	return r.emit(e)
}

// Started reads what the run has recorded so far, and makes the event.
func (r *Run) Started(events io.Writer) (*Started, error) {
	from := r.Trainer.Step()
	var since interval
	if file := r.prev.from; file != nil {
		since = parseInterval(file.Aside(), from)
	}
	var err error
	if r.past, err = readHistory(r.place.at(filepath.Join(r.Out, output.MetricsFile)), from, r.MetricsEvery, since,
		r.prev.ownPast()); err != nil {
		return nil, output.FolderError(r.Out, err)
	}
	r.out.past = r.past
	r.control.trainer, r.control.past = r.Trainer, r.past
	r.sight = &sight{o: r.Options, warn: r.Console.Warn, photos: len(r.Train), from: from, visited: map[int]bool{}}
	line := StartLine{Event: meter.EventStart, Version: cli.Version(), Device: r.deviceNames(), Scene: r.Scene,
		Out: r.Out, Step: from, Total: r.Config.Iterations, TrainImages: len(r.Train), TestImages: len(r.Test),
		Resolution: r.resolution(), Points: r.nPoints,
		PlannedBytes: r.Trainer.MemoryStats().TotalBytes, BudgetBytes: r.deviceBudget()}
	return &Started{Options: r.Options, Console: r.Console, Out: events, Line: line, Capture: r.Capture, Train: r.Train,
		Test: r.Test, Nearest: r.nearest, At: r.place.at, Splats: r.Trainer.NSplats(), Driver: r.device.Driver(),
		Calibrated: r.calibrated,
		Past:       r.past, Control: &r.control}, nil
}

// begin stores, with the first step or file of a run, the cameras that it uses, and notes what it was begun with.
func (r *Run) begin() error {
	if r.begun {
		return nil
	}
	if err := r.Load.SaveCameras(r.place.at(r.Out), startFolder(r.Options)); err != nil {
		return err
	}
	r.begun = true
	if err := r.prev.remember(r.place.at); err != nil {
		r.Console.Warn(fmt.Sprintf("resuming before the first checkpoint will need the same command line: %v", err))
	}
	return r.emit(&Begun{})
}

// writeModel writes the model of a step.
func (r *Run) writeModel(step int) error { return r.out.writeModel(step) }

// train trains, and measures and saves on the way where that is asked for. Its error may be that of ctx.
func (r *Run) train(ctx context.Context) error {
	if !r.Checkpoints.Off {
		run := r.record(&r.id)
		run.Aside = func() string { return r.past.since.text() }
		r.Trainer.SetRun(run)
	}
	if err := r.saver.begin(); err != nil {
		return err
	}
	r.Console.LimitHeap(r.plan.HeapLimit()) // the driver has compiled the kernels
	r.done = r.Trainer.Step()
	if from := r.prev.from; from != nil && r.done == from.Header.Step && from.Header.Next.Step < r.done {
		r.done-- // what belongs to the last step is not done: a refinement or a reset
	} else {
		asked := r.prev.ownPast() && slices.Contains(r.Checkpoints.SaveAt, r.done)
		if asked && !output.IsFile(modelFile(r.Out, r.done)) { // killed between the checkpoint and the model
			if err := r.writeModel(r.done); err != nil {
				return err
			}
		}
		if err := r.measureOnTheWay(ctx); err != nil {
			return err
		}
	}
	for more := true; more; {
		var err error
		if more, err = r.advance(ctx); err != nil {
			return err
		}
	}
	return nil
}

// advance trains to the next step where something is to be saved or measured, or until a checkpoint is due, and does
// that. more is false once all steps are done.
func (r *Run) advance(ctx context.Context) (more bool, err error) {
	last := r.Config.Iterations
	stop := min(r.saver.nextStop(r.done), last)
	for _, at := range r.EvalAt {
		if at > r.done {
			stop = min(stop, at)
		}
	}
	part, cancel := r.saver.stretchOf(ctx)
	err = r.trainTo(part, stop, func() {
		if r.saver.poll() {
			cancel()
		}
	})
	cancel()
	switch {
	case ctx.Err() != nil || err != nil && !errors.Is(err, context.Canceled):
		return false, err
	case err != nil: // the stop may be reached already, but for a refinement: trainTo does it
		r.saver.early()
		return true, nil
	}
	if r.done = stop; stop >= last {
		return false, nil
	}
	if r.saver.nextStop(stop-1) == stop {
		r.saver.atStop(stop)
	}
	return true, r.measureOnTheWay(ctx)
}

// measureOnTheWay measures after the steps that are done, if that is asked for.
func (r *Run) measureOnTheWay(ctx context.Context) error {
	step := r.done
	if !slices.Contains(r.EvalAt, step) || step >= r.Config.Iterations {
		return nil
	}
	views, err := r.measure(ctx, step)
	if err == nil && len(views) > 0 {
		err = r.emit(&Scored{r.out.stats(false, views)})
	}
	// A disk that is full is no reason to stop training: room may be made.
	if errors.Is(err, fault.ErrTryAgain) {
		r.Console.Warn(fmt.Sprintf("step %d is not measured: %v", step, err))
		return nil
	}
	return err
}

// measure measures the held-out photos. r.unmeasured is set where the user gives that up.
func (r *Run) measure(ctx context.Context, step int) ([]results.ViewScore, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // Ctrl-C has stopped the training; what was trained is measured all the same
		ctx = context.Background()
	} else {
		defer r.control.during(StageMeasuring)()
	}
	s := &scorer{dataset: &r.dataset, machine: &r.machine, o: r.Options, past: r.past, spent: r.control.watch.seconds,
		at: r.place.at, own: r.place.own.Begin, emit: r.emit, measured: r.limit.clock.evaluated,
		resumed: r.prev.from != nil}
	views, err := s.measure(ctx, step)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		r.unmeasured = true
		return nil, nil
	}
	return views, err
}

// trainTo trains up to a step. after is called after every step.
func (r *Run) trainTo(ctx context.Context, step int, after func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r.control.watch.begin()
	err := r.emit(&Stretch{true})
	if err == nil {
		err = r.Trainer.RunTo(ctx, step, func(p pipeline.Progress) {
			if r.failure = r.afterStep(p); r.failure != nil {
				stop()
			}
			after()
			if !p.More && r.limit.timeIsUp(p.Level) {
				r.Console.Note("time limit of " + r.TimeLimit.text() + ": " + r.control.stops())
				r.control.stop()
			}
		})
	}
	r.control.watch.end()
	err = errors.Join(err, r.emit(&Stretch{false}))
	if r.failure != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return r.failure
	}
	return err
}

// afterStep notes a step. An error ends the training.
func (r *Run) afterStep(p pipeline.Progress) error {
	if err := r.begin(); err != nil {
		return err
	}
	r.stepped.Progress = p
	err := r.emit(&r.stepped)
	if line := r.past.add(&p, r.Config.Iterations, r.control.watch.seconds(), r.control.Use); line != nil {
		err = errors.Join(err, r.emit(&Logged{line}))
	}
	return errors.Join(err, r.sight.step(&p))
}

// Close frees everything.
func (r *Run) Close() error {
	var errs []error
	for _, o := range r.observers {
		errs = append(errs, o.Close())
	}
	r.observers = nil
	if r.place.staged {
		r.saver.settle()
	}
	errs = append(errs, r.place.unlist())
	if r.prev.from != nil {
		errs = append(errs, r.prev.from.Close())
	}
	errs = append(errs, r.machine.close())
	r.id.close()
	return errors.Join(errs...)
}
