package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/checkpoint"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// makeRoomFor grows what members, by their reports, were short of in a unit of a step. Nothing is in flight, so that no
// device waits for another: an error does not end the team, whose state can still be saved.
func (t *Trainer) makeRoomFor(reports []*layout.Report, step int) error {
	if err := t.e.growPackets(reports); err != nil {
		return err
	}
	for i, m := range t.members {
		r, err := reports[i], error(nil)
		switch {
		case r != nil && r.Failed&^layout.FailedPeer != 0:
			err = t.makeRoom(m, r, step)
		case r != nil:
			err = m.e.setup.setCounters(r.NSplats)
		}
		if err == nil && !m.e.programs.built() { // packets are larger now
			err = m.e.memory.buildToFit()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeRoom grows what the failed unit of a step, in which r is m's report, needed. Nothing is in flight.
func (t *Trainer) makeRoom(m *member, r *layout.Report, step int) error {
	had := m.e.setup.dev.Stats().Allocated // what the driver surely has: recovering gives some of it back first
	err := m.e.recover(r, m.maxSplats)
	if err == nil || !errors.Is(err, vk.ErrOutOfMemory) && !errors.Is(err, ErrTooSmall) {
		return err
	}
	return t.relieve(m, r, step, had, err)
}

// relieve goes on with less memory after cause, which came when had bytes were taken: the driver has less than the
// budget says, or what is free lies in pieces that are too small. First goes the photos' cache, then the wish for more
// splats. Parameters, moments and statistics stay as they are whatever happens.
func (t *Trainer) relieve(m *member, r *layout.Report, step int, had int64, cause error) error {
	if now := m.shortage(t.next.Number); now != m.relieved {
		m.relieved = now
	} else { // for this very unit, which led to nothing
		return t.spent(m, cause)
	}
	byDriver := vk.RefusedByDriver(cause)
	if err := m.e.programs.free(); err != nil {
		return errors.Join(cause, err)
	}
	if t.o.OnPressure != nil && !t.partly(t.next.Number) {
		t.o.OnPressure(step)
	}
	if byDriver {
		m.e.setup.dev.SetBudget(had)
	}
	if len(m.photos.slots) > 0 {
		if err := m.dropPhotos(); err != nil {
			return errors.Join(cause, err)
		}
		m.e.memory.isectMost = 0
		if err := m.e.recover(r, m.maxSplats); err == nil && m.e.memory.roomForBands() {
			t.say(byDriver, "photos are not kept in its memory any more")
			return nil
		}
	}
	before := m.maxSplats
	if err := m.stopGrowing(r); err != nil {
		m.maxSplats = before // what is saved goes on elsewhere as if nothing had happened
		return t.spent(m, err)
	}
	if t.memoryLimited < 0 && m.maxSplats < before {
		t.memoryLimited = step + 1
		t.Deviate(fmt.Sprintf(checkpoint.RanShort+": the model stops growing at %d splats", t.ceiling()))
	}
	t.say(byDriver, fmt.Sprintf("the model stops growing at %d splats, and bytes depend on this from step %d on",
		t.ceiling(), step+1))
	return nil
}

// shortage is what a member has when a unit is short of memory.
type shortage struct {
	unit                                      uint32
	ceiling, capacity, photos, bands, tooMany int
}

func (m *member) shortage(unit uint32) shortage {
	return shortage{unit, m.maxSplats, m.e.setup.model.capacity(), len(m.photos.slots), m.e.setup.bands,
		m.e.memory.isectMost}
}

// stopGrowing lowers the ceiling to what the model has room for, so that a refinement that runs again finds it there.
// Chunks without splats go until there is room for the pairs of a view.
func (m *member) stopGrowing(r *layout.Report) error {
	less, e := *r, m.e
	less.Failed &^= layout.FailedSplats
	for {
		if err := e.programs.free(); err != nil {
			return err
		}
		m.maxSplats = min(m.maxSplats, e.setup.model.capacity())
		e.memory.isectMost = 0
		e.setup.isectCapacity = min(e.memory.isectLimit(),
			e.memory.firstIsects(int(r.NSplats))) &^ (layout.MostBucket - 1)
		err := ErrTooSmall
		if e.setup.isectCapacity > 0 {
			err = e.recover(&less, m.maxSplats)
		}
		if err == nil && e.memory.roomForBands() {
			return nil
		}
		dropped, free := e.setup.model.dropEmpty(int(r.NSplats))
		if free != nil || !dropped {
			return errors.Join(err, free) // nil where the little that there is will have to do
		}
	}
}

// spent ends a run for want of memory. The model can still be read.
func (t *Trainer) spent(m *member, err error) error {
	_ = m.e.programs.free()
	if !errors.Is(err, ErrTooSmall) {
		err = fmt.Errorf("%w: %w", ErrTooSmall, err)
	}
	return fmt.Errorf("train step %d: %w", t.next.Step+1, err)
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
