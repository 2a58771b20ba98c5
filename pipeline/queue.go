package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/recipe"
	"vksplat/shaders/layout"
)

// queue submits the units of a run, some ahead of the device, and collects their reports. Where a unit did not fit, it
// makes room and goes back to that unit. The results again say so.
type queue struct {
	run        *training
	shards     *shards
	report     *report
	pressure   *pressure
	poses      *aligner // nil: poses are given
	writer     *checkpoint.Writer
	interludes *Interludes

	next      recipe.Unit   // to submit
	submitted int           // units ever submitted, for the choice of the frame
	views     []int         // of the unit that is being submitted, by rank
	staged    []stagedPhoto // of those views
	balanced  uint32        // number of the last unit before which rebalance looked at the shards
	level     int           // of the photos that programs are made for, see matchLevel
	err       error         // that ended the run, for good
}

// inFlight is the most units that the device has queued: enough that it never waits for the host.
const inFlight = 3

// runTo submits units up to a step and collects them. An error of ctx ends it early, and is not returned.
func (q *queue) runTo(ctx context.Context, step int) error {
	for again := true; again; {
		for q.next.Step < step && ctx.Err() == nil {
			err := q.turn(ctx)
			if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) && !errors.Is(err, ctx.Err())) {
				return err
			}
		}
		// A unit still in flight may turn out not to fit.
		var err error
		if again, err = q.drain(); err != nil {
			return err
		}
	}
	return nil
}

// turn serves interludes and submits the next unit.
func (q *queue) turn(ctx context.Context) error {
	if err := q.writer.Diverged(); err != nil {
		return err
	}
	held, err := q.interludes.serve(ctx, q.wait)
	q.report.elapsed -= held
	if err != nil || ctx.Err() != nil { // an interlude may end the run
		return err
	}
	return q.advance(ctx)
}

// advance submits the next unit, after collecting the last one of its frames.
func (q *queue) advance(ctx context.Context) error {
	q.writer.Settle()
	if again, err := q.matchLevel(); err != nil || again {
		return err
	}
	if q.poses.trialDue(q.next) {
		if again, err := q.drain(); err != nil || again {
			return err
		}
		if err := q.poses.try(ctx, q.next.Step); err != nil {
			return err
		}
	}
	slot := q.submitted % inFlight
	if again, err := q.collect(slot); err != nil || again {
		return err
	}
	if again, err := q.rebalance(); err != nil || again {
		return err
	}
	return q.submit(ctx, slot, q.next)
}

// submit submits a unit to all devices that have not done it.
func (q *queue) submit(ctx context.Context, slot int, u recipe.Unit) error {
	if err := q.stagePhotos(ctx, slot, u); err != nil {
		return err
	}
	team := q.shards.first.e.programs.team
	team.Begin()
	for i, m := range q.shards.list {
		f := m.e.programs.frames[slot]
		if u.Number < m.from {
			f.unit, f.skipped = u, true
			continue
		}
		q.run.setParams(q.shards, m, f, u, q.views)
		timed := u.Kind == recipe.Step && q.timed(m, slot)
		if err := m.e.programs.submit(f, u, timed, &q.staged[i]); err != nil {
			return team.Fail(err)
		}
	}
	q.interludes.moves(true)
	q.submitted++
	q.next = q.run.cfg.After(u, q.run.carves)
	return nil
}

// timed reports whether a shard's next step, on the frame of a slot, has timestamps: some of the first frame's, and all
// or none while steps are measured.
func (q *queue) timed(m *shard, slot int) bool {
	if q.report.meter != nil {
		return q.report.meter.Timed()
	}
	return slot == 0 && m.pace.wantsTimes()
}

// stagePhotos sets the views of a unit and their photos.
func (q *queue) stagePhotos(ctx context.Context, slot int, u recipe.Unit) error {
	q.views, q.staged = q.views[:0], q.staged[:0]
	if len(q.shards.list) > 1 && u.Kind == recipe.Step { // the source waits until all have announced what they need
		for _, m := range q.shards.list {
			m.photos.announce(u.Step)
		}
	}
	for _, m := range q.shards.list {
		var p stagedPhoto
		view := m.photos.order.at(u.Step)
		if u.Kind == recipe.Step {
			var err error
			if view, p, err = m.photos.ready(ctx, slot, u.Step); err != nil {
				for i := range q.staged { // none of them is submitted
					q.shards.list[i].photos.undo(q.views[i], u.Step, q.staged[i].keep)
				}
				return err
			}
		}
		q.views, q.staged = append(q.views, view), append(q.staged, p)
	}
	return nil
}

// collect waits for a frame and reads its reports.
func (q *queue) collect(slot int) (again bool, err error) {
	if !q.shards.busy(slot) {
		return false, nil
	}
	start := time.Now()
	team, failed := q.shards.first.e.programs.team, false
	for _, m := range q.shards.list {
		f := m.e.programs.frames[slot]
		if err := m.e.programs.wait(f); err != nil {
			return false, team.Fail(err)
		}
		failed = failed || !f.skipped && f.hostReport.Failed != 0
	}
	q.report.meter.Wait(time.Since(start))
	if err := team.Failure(); err != nil {
		return false, err
	}
	if failed {
		return true, q.replay(slot)
	}
	return q.commit(slot)
}

// commit notes the reports of a unit that all devices have done.
func (q *queue) commit(slot int) (again bool, err error) {
	p := &q.report.progress
	p.Splats = 0
	for _, m := range q.shards.list {
		f := m.e.programs.frames[slot]
		if f.skipped {
			f.skipped = false
		} else if err := q.commitCounts(m, f); err != nil {
			return false, err
		}
		p.Splats += m.splats
	}
	u := q.shards.first.e.programs.frames[slot].unit
	if p.Splats == 0 {
		return false, fmt.Errorf("train step %d: %w", u.Step+1, ErrNoSplats)
	}
	if u.Kind != recipe.Step {
		return false, nil
	}
	for _, m := range q.shards.list {
		if err := q.commitView(m, m.e.programs.frames[slot]); err != nil {
			return false, err
		}
	}
	for _, m := range q.shards.list {
		f := m.e.programs.frames[slot]
		if f.ran == f.timed && m.pace.observe(f.ran, m.e.setup.bands < m.e.setup.mostBands() && !m.pace.undivided) {
			return true, q.changePace(m)
		}
	}
	return false, nil
}

// commitCounts notes the splats that a shard has after a unit.
func (q *queue) commitCounts(m *shard, f *frame) error {
	m.splats = int(f.hostReport.NSplats)
	q.report.ceilingHits += int(f.hostReport.MaxSplatsHit)
	return f.verifier.judge(f.unit)
}

// commitView notes the loss of a device's view of a step.
func (q *queue) commitView(m *shard, f *frame) error {
	if x := float64(f.hostReport.Loss); math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("train step %d: %w: the loss is not finite", f.unit.Step+1, ErrDiverged)
	}
	q.report.add(f.hostReport, f.unit.Step, m.photos.order.at(f.unit.Step), q.run.cfg.Level(f.unit.Step))
	if m == q.shards.first {
		q.report.observe(f)
	}
	q.report.publish(m != q.shards.list[len(q.shards.list)-1])
	return nil
}

// drain collects everything in flight, the oldest first.
func (q *queue) drain() (again bool, err error) {
	for i := range inFlight {
		if again, err := q.collect((q.submitted + i) % inFlight); err != nil || again {
			return again, err
		}
	}
	return false, nil
}

// wait collects everything in flight, and makes room for what did not fit: the units from there on are next.
func (q *queue) wait() error {
	for {
		if again, err := q.drain(); err != nil || !again {
			return err
		}
	}
}

// replay makes room for what did not fit in the frame that failed first, and goes back to the unit that failed. That
// unit and those after it modified nothing, with one exception: a refinement, and what follows it up to the next step,
// may have failed on some devices and be done on others, which do not repeat it.
func (q *queue) replay(slot int) error {
	reports := make([]*layout.Report, len(q.shards.list))
	back, reasons := q.next, uint32(0)
	for i, m := range q.shards.list {
		if err := m.e.programs.waitForAll(); err != nil {
			return m.e.programs.team.Fail(err)
		}
		m.pace.reset()
		failed, err := q.firstFailure(m, slot)
		if err != nil {
			return err
		}
		if failed == nil {
			m.from = q.next.Number
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
	if err := q.shards.first.e.programs.team.Failure(); err != nil {
		return err
	}
	if reasons == layout.FailedPeer {
		return fmt.Errorf("internal error: unit %d failed on all devices because of the others", back.Number)
	}
	q.report.progress.Splats = sum(q.shards.sizes())
	q.next = back
	return q.pressure.makeRoom(reports, back)
}

// firstFailure returns a copy of a shard's first report of a failure among the units in flight, of which slot has the
// oldest, or nil. It commits the units before. All have been waited for.
func (q *queue) firstFailure(m *shard, slot int) (*layout.Report, error) {
	frames := m.e.programs.frames
	oldest := frames[slot].unit.Number
	for u := oldest; u < q.next.Number; u++ {
		f := frames[(slot+int(u-oldest))%len(frames)]
		if f.skipped {
			f.skipped = false
			continue
		}
		if r := *f.hostReport; r.Failed != 0 {
			m.splats = int(r.NSplats)
			return &r, nil
		}
		if err := q.commitCounts(m, f); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// changePace rebuilds a shard's programs for submits of the right length.
func (q *queue) changePace(m *shard) error {
	if again, err := q.drain(); err != nil || again {
		return err // programs have been built again, and are measured again
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

// matchLevel makes the programs fit the level of the next step's photos.
func (q *queue) matchLevel() (again bool, err error) {
	level := q.run.cfg.Level(q.next.Step)
	if level == q.level || q.next.Kind != recipe.Step {
		return false, nil
	}
	if again, err := q.drain(); err != nil || again {
		return again, err
	}
	q.level = level
	return false, q.shards.each(func(m *shard) error {
		m.pace.measureAgain()
		if shrunk := level > 0; m.e.setup.compare.shrunk != shrunk {
			m.e.setup.compare.shrunk = shrunk
			return m.e.memory.buildToFit()
		}
		return nil
	})
}
