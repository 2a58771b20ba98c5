package train

import (
	"errors"
	"fmt"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
)

// ending says how a run ended, what of it is saved, and how to continue.
type ending struct {
	*Options
	*notes
	*machine
	prev  *previous
	saver *saver
	limit *limiter
	out   *outputs
}

// stoppedError says what a run that was stopped has written, and how to continue; nil where it was not, or where its
// time limit ended it, which is no failure. saved says that its checkpoint was, if it has one.
func (e *ending) stoppedError(interrupted, unmeasured, saved bool) (err error) {
	step, then := e.Trainer.Step(), "continue with: "+e.Resumed(e.Options)
	saved = saved && e.saver.newest() != ""
	switch {
	case unmeasured && e.Trainer.Complete():
		err = fmt.Errorf("%w while measuring the held-out photos: the model is complete and saved, its scores and "+
			"some of its pictures are missing", fault.ErrInterrupted)
		then = "measure it with: " + e.Resumed(e.Options)
	case unmeasured:
		err = fmt.Errorf("%w at step %d of %d, while measuring the held-out photos: the model is saved, its scores and "+
			"some of its pictures are missing", fault.ErrInterrupted, step, e.Config.Iterations)
	case e.limit.over:
		if !saved {
			then = "no checkpoint is kept to continue from"
		}
		e.limit.then = then
		e.console.Sayf("Time limit reached at step %d of %d. The model is saved; %s\n", step, e.Config.Iterations, then)
		return nil
	case interrupted:
		err = fmt.Errorf("%w at step %d of %d; the model is saved", fault.ErrInterrupted, step, e.Config.Iterations)
	default:
		return nil
	}
	switch {
	case saved:
		return fault.WithHint(err, then)
	case interrupted && !e.Checkpoints.Off:
		return fault.WithHint(err, "start it over with: "+e.Resumed(e.Options))
	case unmeasured && e.Trainer.Complete():
		return fault.WithHint(err, "no checkpoint is kept: the same command starts from scratch; vksplat render draws "+
			"the model")
	}
	return err
}

// lostHint adds to the error of a device that the driver gave up what of the run is saved, and the command that
// resumes from there. The state of a device is gone with it, and with that the model, whatever the others have.
func (e *ending) lostHint(err error) error {
	if !errors.Is(err, pipeline.ErrDeviceLost) || e.Checkpoints.Off {
		return err
	}
	// of a copy that was taken before: the checkpoint before it stays where that is gone, too
	unfinished := e.saver.collect()
	state := "no checkpoint had been written"
	again := "start over with: " + e.Again(Change{Setting: "resume", LeftOut: true})
	if from := e.prev.from; from != nil { // of another folder, or among those that are kept
		state, again = "no checkpoint had been written since "+from.Path(),
			"resume from that again: "+e.Again(Change{Setting: "resume", Value: from.Path()})
	}
	if path := e.saver.newest(); path != "" {
		state, again = "the last checkpoint, "+path+", is whole",
			"resume from it: "+e.Again(Change{Setting: "resume"})
		if unfinished != nil {
			state = "the checkpoint that was being written is lost; the one before it, " + path + ", is whole"
		}
	}
	about := fault.Hint(err)
	if len(e.others) > 0 {
		about += "; leave the device out of " + fault.Setting("devices") + " if it does not come back"
	}
	return fault.WithHint(fmt.Errorf("%w; %s", err, state), about+"; "+again)
}

// givenUp is the error of a run that the user stopped before it could take the place of the earlier one.
func (e *ending) givenUp() error {
	return fault.WithHint(fmt.Errorf("%w after step %d of %d, before the first checkpoint", e.limit.interruptedBy(),
		e.Trainer.Step(), e.Config.Iterations),
		"the same command starts from scratch; the earlier run in "+e.Out+" is as it was")
}

// divergedHint adds to the error of a run that went astray the last checkpoint from before.
func (e *ending) divergedHint(err error) error {
	if !errors.Is(err, pipeline.ErrDiverged) || e.saver.newest() == "" {
		return err
	}
	return fault.WithHint(err, "lower the learning rates, then start over or resume from the last checkpoint before it "+
		"diverged: "+fault.Command("train SCENE -m OUT --resume="+cli.Quoted(e.saver.newest())+" --accept-changes"))
}

// fullHint adds to the error of a full disk what of the run is complete, and how to continue.
func (e *ending) fullHint(err error) error {
	if !fault.IsFull(err) {
		return err
	}
	state, then, model := "no model of this run has been written", "try again", e.out.written
	if models := output.FormerModels(e.Out); model == "" && e.prev.ownPast() && len(models) > 0 {
		model = models[len(models)-1]
	}
	if model != "" {
		state = "the model " + model + " is complete"
	}
	if checkpoint := e.saver.newest(); checkpoint != "" {
		state += "; the checkpoint " + checkpoint + " is complete"
		then = "continue with: " + e.Resumed(e.Options)
	}
	text := state + "; once there is room, " + then
	if before := fault.Hint(err); before != "" {
		text = before + "; " + text
	}
	return fault.WithHint(err, text)
}
