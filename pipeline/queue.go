package pipeline

import (
	"fmt"
	"math"
	"time"

	"vksplat/pipeline/recipe"
	"vksplat/shaders/layout"
)

// inFlight is the number of units that the device has queued at most: enough that it never waits for the host.
const inFlight = 3

// advance submits the next unit, after taking in what its frames were busy with.
func (t *Trainer) advance() error {
	t.writer.Settle()
	if again, err := t.atLevel(); err != nil || again {
		return err
	}
	if again, err := t.tryPoses(); err != nil || again {
		return err
	}
	slot := t.queued % len(t.e.programs.frames)
	if again, err := t.collect(slot); err != nil || again {
		return err
	}
	if again, err := t.rebalance(); err != nil || again {
		return err
	}
	u := t.next
	photos, err := t.photosOf(slot, u)
	if err != nil {
		return err
	}
	t.e.programs.team.Begin()
	for i, m := range t.members {
		f := m.e.programs.frames[slot]
		if u.Number < m.from {
			f.unit, f.skipped = u, true
			continue
		}
		t.setParams(&t.group, m, f, u, t.views)
		timed := u.Kind == recipe.Step && t.timed(m, slot)
		if err := m.e.programs.submit(f, u, timed, &photos[i]); err != nil {
			return t.e.programs.team.Fail(err)
		}
	}
	t.o.Interludes.moves(true)
	t.queued++
	t.next = t.cfg.After(u, t.carves)
	return nil
}

// timed reports whether a member's next step, on the frame of a slot, has timestamps: some of the first frame's, and
// all or none while steps are measured.
func (t *Trainer) timed(m *member, slot int) bool {
	if t.meter != nil {
		return t.meter.Timed()
	}
	return slot == 0 && m.pace.due()
}

// photosOf finds the photos of a unit, by member, and notes in t.views what the views are.
func (t *Trainer) photosOf(slot int, u recipe.Unit) ([]stagedPhoto, error) {
	t.views, t.staged = t.views[:0], t.staged[:0]
	if len(t.members) > 1 && u.Kind == recipe.Step { // the source hears of it once all know what they want
		for _, m := range t.members {
			m.photos.look(u.Step)
		}
	}
	for _, m := range t.members {
		var p stagedPhoto
		view := m.photos.order.at(u.Step)
		if u.Kind == recipe.Step {
			var err error
			if view, p, err = m.photos.ready(t.ctx, slot, u.Step); err != nil {
				for i := range t.staged { // nothing of them is submitted
					t.members[i].photos.undo(t.views[i], u.Step, t.staged[i].keep)
				}
				return nil, err
			}
		}
		t.views, t.staged = append(t.views, view), append(t.staged, p)
	}
	return t.staged, nil
}

// collect waits for a frame and takes in its report. again says that the unit, or one before it, did not fit: there is
// room now, and the queue starts anew from the first unit that failed.
func (t *Trainer) collect(slot int) (again bool, err error) {
	if !t.busy(slot) {
		return false, nil
	}
	start := time.Now()
	failed := false
	for _, m := range t.members {
		f := m.e.programs.frames[slot]
		if err := m.e.programs.wait(f); err != nil {
			return false, t.e.programs.team.Fail(err)
		}
		failed = failed || !f.skipped && f.hostReport.Failed != 0
	}
	t.meter.Wait(time.Since(start))
	if err := t.e.programs.team.Failure(); err != nil {
		return false, err
	}
	if failed {
		return true, t.replay(slot)
	}
	return t.takeReports(slot)
}

// takeReports takes in what the members say of a unit that all have done.
func (t *Trainer) takeReports(slot int) (again bool, err error) {
	t.progress.Splats = 0
	for _, m := range t.members {
		f := m.e.programs.frames[slot]
		if f.skipped {
			f.skipped = false
			t.progress.Splats += m.splats
			continue
		}
		if err := f.verifier.judge(f.unit); err != nil {
			return false, err
		}
		m.splats = int(f.hostReport.NSplats)
		t.progress.Splats += m.splats
		t.ceilingHits += int(f.hostReport.MaxSplatsHit)
	}
	f := t.e.programs.frames[slot]
	if t.progress.Splats == 0 {
		return false, fmt.Errorf("train step %d: %w", f.unit.Step+1, ErrNoSplats)
	}
	if f.unit.Kind != recipe.Step {
		return false, nil
	}
	for _, m := range t.members {
		if err := t.takeStep(m, m.e.programs.frames[slot]); err != nil {
			return false, err
		}
	}
	for _, m := range t.members {
		f := m.e.programs.frames[slot]
		if f.ran == f.timed && m.pace.observe(f.ran, m.e.setup.bands < m.e.setup.mostBands() && !m.pace.undivided) {
			return true, t.repace(m)
		}
	}
	return false, nil
}

// takeStep takes in a member's view of a step.
func (t *Trainer) takeStep(m *member, f *frame) error {
	if x := float64(f.hostReport.Loss); math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("train step %d: %w: the loss is no finite number", f.unit.Step+1, ErrDiverged)
	}
	t.take(f.hostReport, f.unit.Step, m.photos.order.at(f.unit.Step), t.cfg.Level(f.unit.Step))
	if m == t.member {
		t.observe(f)
	}
	t.publish(m != t.members[len(t.members)-1])
	return nil
}

// drain takes in everything in flight. again says that some of it did not fit and that the queue went back to it.
func (t *Trainer) drain() (again bool, err error) {
	n := len(t.e.programs.frames)
	for i := range n { // oldest first
		if again, err := t.collect((t.queued + i) % n); err != nil || again {
			return again, err
		}
	}
	return false, nil
}

// replay grows what members, in the frame that failed first, say is too small, and goes back to the unit that failed.
// Nobody has changed anything in it and in what was queued after it, with one exception: a refinement, and what follows
// it up to the next step, may have failed on some devices and be done on others, which do not get it again.
func (t *Trainer) replay(slot int) error {
	reports := make([]*layout.Report, len(t.members))
	back, reasons := t.next, uint32(0)
	for i, m := range t.members {
		if err := m.waitForAll(); err != nil {
			return t.e.programs.team.Fail(err)
		}
		m.pace.reset()
		failed, err := t.firstFailure(m, slot)
		if err != nil {
			return err
		}
		if failed == nil {
			m.from = t.next.Number
			continue
		}
		u := m.unitInFlight(failed.FailedUnit)
		if u == nil {
			return fmt.Errorf("internal error: unit %d failed and is not in flight", failed.FailedUnit)
		}
		reports[i], m.from = failed, u.Number
		if reasons |= failed.Failed; u.Number < back.Number {
			back = *u
		}
	}
	if err := t.e.programs.team.Failure(); err != nil {
		return err
	}
	if reasons == layout.FailedPeer {
		return fmt.Errorf("internal error: unit %d failed on all devices because of the others", back.Number)
	}
	t.progress.Splats = sum(t.shares())
	t.next = back
	t.lastGrowth = back.Step
	return t.makeRoomFor(reports, back.Step)
}

// firstFailure returns a copy of m's first report of a failure among the units in flight, of which slot has the oldest,
// or nil, and takes in what m has done before that. All are waited for.
func (t *Trainer) firstFailure(m *member, slot int) (*layout.Report, error) {
	frames := m.e.programs.frames
	oldest := frames[slot].unit.Number
	for u := oldest; u < t.next.Number; u++ {
		f := frames[(slot+int(u-oldest))%len(frames)]
		if f.skipped {
			f.skipped = false
			continue
		}
		r := *f.hostReport
		m.splats = int(r.NSplats)
		if r.Failed != 0 {
			return &r, nil
		}
		t.ceilingHits += int(r.MaxSplatsHit)
		if err := f.verifier.judge(f.unit); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// repace rebuilds a member's programs for submits of the right length. Nothing may be lost: everything in flight is
// taken in first.
func (t *Trainer) repace(m *member) error {
	if again, err := t.drain(); err != nil || again {
		return err // programs are built anew then, and measured again
	}
	m.e.programs.split[recipe.Step] = m.pace.split
	if m.pace.moreBands {
		divided, err := m.e.memory.divide()
		if err != nil {
			return err
		}
		m.pace.reset()
		m.pace.undivided = !divided
		m.e.programs.split[recipe.Step] = nil
	}
	return m.e.memory.buildToFit()
}

// atLevel makes the programs fit the level of the next step. again says that something before it did not fit, and that
// the queue went back to it.
func (t *Trainer) atLevel() (again bool, err error) {
	level := t.cfg.Level(t.next.Step)
	if level == t.level || t.next.Kind != recipe.Step {
		return false, nil
	}
	if again, err := t.drain(); err != nil || again {
		return again, err
	}
	t.level = level
	return false, t.each(func(m *member) error {
		m.pace.anew()
		if shrunk := level > 0; m.e.setup.compare.shrunk != shrunk {
			m.e.setup.compare.shrunk = shrunk
			return m.e.memory.buildToFit()
		}
		return nil
	})
}

// takeIn waits until nothing is in flight. What did not fit is grown for first, and what followed is to be done anew.
func (t *Trainer) takeIn() error {
	for {
		if again, err := t.drain(); err != nil || !again {
			return err
		}
	}
}
