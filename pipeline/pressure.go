package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// pressure makes room for units that did not fit, and gives up photos and growth where memory is short.
type pressure struct {
	shards     *shards
	o          *TrainerOptions
	deviate    func(u recipe.Unit, reason string) // notes that bytes may differ from u on
	limited    int                                // step from which on memory decides the bytes; 0: none
	lastGrowth int                                // step of the last unit that did not fit
}

// makeRoom grows what shards were short of in a unit, by their reports. Nothing is in flight, so that no device waits
// for another: an error does not end the team, whose state can still be saved.
func (p *pressure) makeRoom(reports []*layout.Report, u recipe.Unit) error {
	p.lastGrowth = u.Step
	if err := p.shards.first.e.growPackets(reports); err != nil {
		return err
	}
	for i, m := range p.shards.list {
		r, err := reports[i], error(nil)
		switch {
		case r != nil && r.Failed&^layout.FailedPeer != 0:
			err = p.grow(m, r, u)
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

// grow grows what a shard was short of in a unit, by its report.
func (p *pressure) grow(m *shard, r *layout.Report, u recipe.Unit) error {
	had := m.e.setup.dev.Stats().Allocated // what the driver surely has: recovering first frees some of it
	err := m.e.recover(r, m.maxSplats)
	if err == nil || !errors.Is(err, vk.ErrOutOfMemory) && !errors.Is(err, ErrTooSmall) {
		return err
	}
	return p.relieve(m, r, u, had, err)
}

// relieve continues with less memory after cause, which came when had bytes were allocated: the driver has less than
// the budget says, or free memory is fragmented. The photos' cache goes first, then growth. Parameters, moments and
// statistics never change.
func (p *pressure) relieve(m *shard, r *layout.Report, u recipe.Unit, had int64, cause error) error {
	now := m.shortage(u.Number)
	if now == m.relieved { // to no effect
		return p.fail(m, u, cause)
	}
	m.relieved = now
	byDriver := vk.RefusedByDriver(cause)
	if err := m.e.programs.free(); err != nil {
		return errors.Join(cause, err)
	}
	if p.o.OnPressure != nil && !p.shards.partlyDone(u.Number) {
		p.o.OnPressure(u.Step)
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
			p.warn(byDriver, "photos are no longer cached in its memory")
			return nil
		}
	}
	before := m.maxSplats
	if err := m.stopGrowing(r); err != nil {
		m.maxSplats = before // a resumed run has the ceiling that this one had
		return p.fail(m, u, err)
	}
	if p.limited == 0 && m.maxSplats < before {
		p.limited = u.Step + 1
		p.deviate(u, fmt.Sprintf(checkpoint.RanShort+": the model stops growing at %d splats", p.shards.ceiling()))
	}
	p.warn(byDriver, fmt.Sprintf("the model stops growing at %d splats, and bytes depend on this from step %d on",
		p.shards.ceiling(), u.Step+1))
	return nil
}

// shortage is the memory that a shard has when a unit does not fit.
type shortage struct {
	unit                                        uint32
	ceiling, capacity, photos, bands, isectMost int
}

func (m *shard) shortage(unit uint32) shortage {
	return shortage{unit, m.maxSplats, m.e.setup.model.capacity(), len(m.photos.slots), m.e.setup.bands,
		m.e.memory.isectMost}
}

// stopGrowing lowers the ceiling to the model's capacity, so that a refinement that runs again fits. Chunks without
// splats are freed until there is room for the pairs of a view.
func (m *shard) stopGrowing(r *layout.Report) error {
	less, e := *r, m.e
	less.Failed &^= layout.FailedSplats
	for {
		if err := e.programs.free(); err != nil {
			return err
		}
		m.maxSplats = min(m.maxSplats, e.setup.model.capacity())
		e.memory.isectMost = 0
		e.setup.isectCapacity = min(e.memory.isectLimit(e.setup.bands), e.memory.firstIsects(int(r.NSplats))) &^
			(layout.MostBucket - 1)
		err := ErrTooSmall
		if e.setup.isectCapacity > 0 {
			err = e.recover(&less, m.maxSplats)
		}
		if err == nil && e.memory.roomForBands() {
			return nil
		}
		dropped, free := e.setup.model.dropEmpty(int(r.NSplats))
		if free != nil || !dropped {
			return errors.Join(err, free) // nil where the little room has to do
		}
	}
}

// fail ends a run for want of memory. The model can still be read.
func (p *pressure) fail(m *shard, u recipe.Unit, err error) error {
	_ = m.e.programs.free()
	if !errors.Is(err, ErrTooSmall) {
		err = fmt.Errorf("%w: %w", ErrTooSmall, err)
	}
	return fmt.Errorf("train step %d: %w", u.Step+1, err)
}

// warn warns of less memory than was planned.
func (p *pressure) warn(byDriver bool, consequence string) {
	if p.o.Warn == nil {
		return
	}
	cause := "device memory is too fragmented"
	if byDriver {
		cause = "the device has less free memory than its budget: other programs may be using it"
	}
	p.o.Warn(cause + ": " + consequence)
}
