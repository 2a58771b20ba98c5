package train

import (
	"context"
	"errors"
	"fmt"
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

// stopped reports whether the user stopped the training, which ended with runErr. Where that was in the last
// step, which is done all the same, the run is as good as any.
func (r *Run) stopped(ctx context.Context, runErr error) (interrupted bool, err error) {
	runErr = r.endLastStep(ctx, runErr)
	if runErr != nil && (ctx.Err() == nil || !errors.Is(runErr, ctx.Err())) {
		return false, r.ending.fullHint(r.saver.rescue(runErr))
	}
	switch {
	case runErr != nil && r.Trainer.Complete() && !r.unmeasured:
		r.Console.Note("all steps are done: finishing the run")
	case runErr != nil && r.Trainer.Step() == 0:
		return false, fmt.Errorf("%w before the first step; nothing is saved", r.limit.interruptedBy())
	case runErr != nil:
		return true, nil
	}
	r.control.stage.Store(int32(StageEnding))
	return false, nil
}

// worthWaiting is after how many seconds of training a run that is stopped waits for the hashes that its first
// checkpoint needs.
const worthWaiting = 60

// tooEarly reports whether a run that is stopped now ends rather than waits until all photos have been read.
func tooEarly(id *identity, watch *stopwatch) bool {
	return id.pending() && watch.seconds() < worthWaiting
}
