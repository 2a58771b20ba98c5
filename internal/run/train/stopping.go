package train

import (
	"context"
	"errors"
	"fmt"

	"vksplat/internal/fault"
	"vksplat/pipeline"
)

// endLastStep does what belongs to the last step, as a refinement, where the user stopped the run between the two, by
// runErr. It takes less time than a step.
func (r *Run) endLastStep(ctx context.Context, runErr error) error {
	stopped := ctx.Err() != nil && errors.Is(runErr, ctx.Err())
	if !stopped || r.Trainer.Step() < r.Config.Iterations || r.Trainer.Complete() {
		return runErr
	}
	if i := r.control.between; i != nil {
		i.Release() // no viewer is left to let go of what it holds
	}
	if err := r.trainTo(context.WithoutCancel(ctx), r.Config.Iterations, func() {}); err != nil {
		return err
	}
	return runErr
}

// stopped takes in how training ended, by the error of run: whether the user stopped it. Where that was in the last
// step, which is done all the same, the run is as good as any.
func (r *Run) stopped(ctx context.Context, runErr error) (interrupted bool, err error) {
	runErr = r.endLastStep(ctx, runErr)
	if runErr != nil && (ctx.Err() == nil || !errors.Is(runErr, ctx.Err())) {
		return false, r.fullHint(r.saver.rescue(runErr))
	}
	switch {
	case runErr != nil && r.Trainer.Complete() && !r.unmeasured:
		r.Console.Note("all steps were done: the run goes to its end")
	case runErr != nil && r.Trainer.Step() == 0:
		return false, fmt.Errorf("%w before the first step; nothing is saved", r.interruptedBy())
	case runErr != nil:
		return true, nil
	}
	r.control.stage.Store(int32(StageEnding))
	return false, nil
}

// stoppedError says what a run that was stopped has written, and how to continue; nil where it was not, or where its
// time limit ended it, which is no failure. saved says that its checkpoint was, if it has one.
func (r *Run) stoppedError(interrupted, saved bool) (err error) {
	step, then := r.Trainer.Step(), "continue with: "+r.Resumed(r.Options)
	saved = saved && r.saver.newest() != ""
	switch {
	case r.unmeasured && r.Trainer.Complete():
		err = fmt.Errorf("%w while measuring the held-out photos: the model is complete and saved, its scores and "+
			"some of its pictures are missing", fault.ErrInterrupted)
		then = "measure it with: " + r.Resumed(r.Options)
	case r.unmeasured:
		err = fmt.Errorf("%w at step %d of %d, while measuring the held-out photos: the model is saved, its scores and "+
			"some of its pictures are missing", fault.ErrInterrupted, step, r.Config.Iterations)
	case r.limit.over:
		if !saved {
			then = "no checkpoint is kept to continue from"
		}
		r.limit.then = then
		r.Console.Sayf("Time limit reached at step %d of %d. The model is saved; %s\n", step, r.Config.Iterations, then)
		return nil
	case interrupted:
		err = fmt.Errorf("%w at step %d of %d; the model is saved", fault.ErrInterrupted, step, r.Config.Iterations)
	default:
		return nil
	}
	switch {
	case saved:
		return fault.WithHint(err, then)
	case interrupted && !r.saver.o.Off:
		return fault.WithHint(err, "start it over with: "+r.Resumed(r.Options))
	case r.unmeasured && r.Trainer.Complete():
		return fault.WithHint(err, "no checkpoint is kept: the same command starts from scratch; vksplat render draws "+
			"the model")
	}
	return err
}

// lostHint adds to the error of a device that the driver gave up what of the run is saved, and the command that goes on
// from there. The state of a device is gone with it, and with that the model, whatever the others have.
func (r *Run) lostHint(err error) error {
	if !errors.Is(err, pipeline.ErrDeviceLost) || r.saver.o.Off {
		return err
	}
	// of a copy that was taken before: the checkpoint before it stays where that is gone, too
	unfinished := r.saver.collect()
	state := "no checkpoint had been written"
	again := "start over with: " + r.Again(Change{Setting: "resume", LeftOut: true})
	if from := r.prev.from; from != nil { // of another folder, or among those that are kept
		state, again = "no checkpoint had been written since "+from.Path(),
			"resume from that again: "+r.Again(Change{Setting: "resume", Value: from.Path()})
	}
	if path := r.saver.newest(); path != "" {
		state, again = "the last checkpoint, "+path+", is whole",
			"resume from it: "+r.Again(Change{Setting: "resume"})
		if unfinished != nil {
			state = "the checkpoint that was being written is lost; the one before it, " + path + ", is whole"
		}
	}
	about := fault.Hint(err)
	if len(r.others) > 0 {
		about += "; leave the device out of " + fault.Setting("devices") + " if it does not come back"
	}
	return fault.WithHint(fmt.Errorf("%w; %s", err, state), about+"; "+again)
}

// givenUp is the error of a run that the user stopped before it could take the place of the earlier one.
func (r *Run) givenUp() error {
	return fault.WithHint(fmt.Errorf("%w after step %d of %d, before the first checkpoint", r.interruptedBy(),
		r.Trainer.Step(), r.Config.Iterations),
		"the same command starts from scratch; the earlier run in "+r.Out+" is as it was")
}

// worthWaiting is after how many seconds of training a run that is stopped waits for the hashes that its first
// checkpoint needs.
const worthWaiting = 60

// tooEarly reports whether a run that is stopped now had rather end than wait until all photos have been read.
func (r *Run) tooEarly() bool { return r.id.pending() && r.control.watch.seconds() < worthWaiting }
