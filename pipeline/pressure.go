package pipeline

import (
	"errors"
	"fmt"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// ranShort begins the deviation of a run whose ceiling had to come down.
const ranShort = "memory ran short"

// makeRoom grows what the failed unit of a step, whose report is r, needed. Nothing is in flight.
func (t *Trainer) makeRoom(r *layout.Report, step int) error {
	had := t.e.dev.Stats().Allocated // what the driver surely has: recovering gives some of it back first
	err := t.e.recover(r, t.maxSplats)
	if err == nil || !errors.Is(err, vk.ErrOutOfMemory) && !errors.Is(err, ErrTooSmall) {
		return err
	}
	return t.relieve(r, step, had, err)
}

// relieve goes on with less memory after cause, which came when had bytes were taken: the driver has less than the budget says, or what is free lies in
// pieces that are too small. First goes the photos' cache, then the wish for more splats. Parameters, moments and statistics stay as they are whatever
// happens.
func (t *Trainer) relieve(r *layout.Report, step int, had int64, cause error) error {
	byDriver := vk.RefusedByDriver(cause)
	if err := t.e.startAfresh(); err != nil {
		return errors.Join(cause, err)
	}
	if t.o.OnPressure != nil {
		t.o.OnPressure(step)
	}
	if byDriver {
		t.e.dev.SetBudget(had)
	}
	if len(t.photos.slots) > 0 {
		if err := t.photos.dropCache(); err != nil {
			return errors.Join(cause, err)
		}
		t.e.isectMost = 0
		if err := t.e.recover(r, t.maxSplats); err == nil && t.e.roomForBands() {
			t.say(byDriver, "photos are not kept in its memory any more")
			return nil
		}
	}
	before := t.maxSplats
	if err := t.stopGrowing(r); err != nil {
		return t.spent(err)
	}
	if t.odd < 0 && t.maxSplats < before {
		t.odd = step + 1
		t.Deviate(fmt.Sprintf(ranShort+": the model stops growing at %d splats", t.maxSplats))
	}
	t.say(byDriver, fmt.Sprintf("the model stops growing at %d splats, and bytes depend on this from step %d on", t.maxSplats, step+1))
	return nil
}

// stopGrowing lowers the ceiling to what the model has room for, so that a refinement that runs again finds it there. Chunks without splats go until there
// is room for the pairs of a view.
func (t *Trainer) stopGrowing(r *layout.Report) error {
	less, e := *r, t.e
	less.Failed &^= layout.FailedSplats
	for {
		if err := e.startAfresh(); err != nil {
			return err
		}
		t.maxSplats = min(t.maxSplats, e.model.capacity())
		e.isectMost = 0
		e.isectCapacity = min(e.isectLimit(), e.firstIsects(int(r.NSplats))) &^ (layout.BucketSize - 1)
		err := ErrTooSmall
		if e.isectCapacity > 0 {
			err = e.recover(&less, t.maxSplats)
		}
		if err == nil && e.roomForBands() {
			return nil
		}
		dropped, free := e.model.dropEmpty(int(r.NSplats))
		if free != nil || !dropped {
			return errors.Join(err, free) // nil where the little that there is will have to do
		}
	}
}

// spent ends a run for want of memory. The model can still be read.
func (t *Trainer) spent(err error) error {
	_ = t.e.startAfresh()
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
