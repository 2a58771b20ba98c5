package pipeline

import (
	"errors"
	"fmt"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// makeRoom grows what the failed unit of a step, whose report is r, needed. Nothing is in flight.
func (t *Trainer) makeRoom(r *layout.Report, step int) error {
	err := t.e.recover(r, t.maxSplats)
	if err == nil || !errors.Is(err, vk.ErrOutOfMemory) && !errors.Is(err, ErrTooSmall) {
		return err
	}
	return t.relieve(r, step, err)
}

// relieve goes on with less memory after cause: the driver has less than the budget says, or what is free lies in pieces that are too small. First goes the
// photos' cache, then the wish for more splats. Parameters, moments and statistics stay as they are whatever happens.
func (t *Trainer) relieve(r *layout.Report, step int, cause error) error {
	byDriver := vk.RefusedByDriver(cause)
	if err := errors.Join(t.e.closePrograms(), t.e.pool.Empty()); err != nil {
		return errors.Join(cause, err)
	}
	if byDriver {
		if t.o.OnPressure != nil {
			t.o.OnPressure(step)
		}
		t.e.dev.SetBudget(t.e.dev.Stats().Allocated)
	}
	t.e.isectMost = 0
	if err := t.photos.dropCache(); err != nil {
		return errors.Join(cause, err)
	}
	err := t.e.recover(r, t.maxSplats)
	if err == nil {
		t.say(byDriver, "photos are not kept in its memory any more")
		return nil
	}
	if r.Failed&layout.FailedSplats == 0 || !errors.Is(err, vk.ErrOutOfMemory) && !errors.Is(err, ErrTooSmall) {
		return t.spent(err)
	}
	if err := errors.Join(t.e.closePrograms(), t.e.pool.Empty()); err != nil {
		return errors.Join(cause, err)
	}
	// The refinement runs again and finds the ceiling where the model ends now.
	t.maxSplats = min(t.maxSplats, max(t.progress.Splats, t.e.model.capacity()))
	if t.odd < 0 {
		t.odd = step + 1
	}
	less := *r
	less.Failed &^= layout.FailedSplats
	t.e.isectMost = 0
	t.e.isectCapacity = min(t.e.isectCapacity, t.e.isectLimit()) &^ (layout.BucketSize - 1)
	if t.e.isectCapacity == 0 {
		return t.spent(err)
	}
	if err := t.e.recover(&less, t.maxSplats); err != nil {
		return t.spent(err)
	}
	t.say(byDriver, fmt.Sprintf("the model stops growing at %d splats, and bytes depend on this from step %d on", t.maxSplats, t.odd))
	return nil
}

// spent ends a run for want of memory. The model can still be read.
func (t *Trainer) spent(err error) error {
	_ = errors.Join(t.e.closePrograms(), t.e.pool.Empty())
	return fmt.Errorf("pipeline: train step %d: %w: %w", t.next.step+1, ErrTooSmall, err)
}

// say warns of less memory than was planned.
func (t *Trainer) say(byDriver bool, consequence string) {
	if t.o.Warn == nil {
		return
	}
	cause := "device memory lies in pieces that are too small"
	if byDriver {
		cause = "the device has less memory than its budget, other programs may use it"
	}
	t.o.Warn(cause + ": " + consequence)
}
