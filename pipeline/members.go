package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"vksplat/pipeline/photos"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// member is a device that trains: its share of the model, and the photos of its views.
type member struct {
	e         *engine
	photos    *devicePhotos
	plan      *Plan
	maxSplats int // ceiling of its share
	splats    int // of its share, by the last unit that the host has taken in
	pace      pace
	from      uint32 // number of the first unit that it has not done; what is before is not given to it again
}

// addMembers makes a member of each device, without what it has there.
func (t *Trainer) addMembers(devices []*Device, photos photos.Source, s start) error {
	if slices.Contains(s.deal.splats, 0) {
		return fmt.Errorf("pipeline: start training: %w: %d splats for %d devices", ErrFewSplats, s.splats, len(devices))
	}
	plans, portions, err := planTeam(devices, t.cams, s.splats, s.deal, t.cfg, t.o)
	if err != nil {
		return err
	}
	for i, d := range devices {
		at, plan := world{rank: i, n: len(devices)}, plans[i]
		e, err := trainingShape(d.dev, at, t.cams, photos, &t.cfg, &t.o)
		if err != nil {
			return err
		}
		e.pool, e.isectPlan = d.dev.NewScratchPool(), plan.Isects
		e.model.unit, e.model.growth = plan.ChunkSplats, plan.growth
		e.compare.shrunk = t.level > 0
		m := &member{e: e, plan: plan, splats: portions[i].splats}
		// A run that goes on keeps its ceiling even where less was planned: it may never get there.
		m.maxSplats = max(plan.Ceiling, portions[i].ceiling)
		m.pace.off = d.dev.Info().Type == vk.CPU
		t.members = append(t.members, m)
	}
	t.member = t.members[0]
	return nil
}

// beginMember makes what a member has on its device beside the splats.
func (t *Trainer) beginMember(m *member, photos photos.Source) (err error) {
	if err := m.e.allocate(inFlight); err != nil {
		return err
	}
	if m.e.has(unitCarve) {
		if err := m.e.loadVoters(t.cams, t.o.Depths); err != nil {
			return err
		}
	}
	m.photos, err = newDevicePhotos(m.e.dev, m.e.world, t.cams, photos, &t.cfg, m.plan, t.o)
	return err
}

// join makes a team of the members, once they have their splats.
func (t *Trainer) join() error {
	if len(t.members) == 1 {
		return nil
	}
	var engines []*engine
	records := t.member.splats // of the smallest share, which all devices planned views for; packets and views of more grow by need
	for _, m := range t.members {
		engines = append(engines, m.e)
		records = min(records, m.splats)
	}
	team, err := newTeam(engines, records)
	if err != nil {
		return err
	}
	for _, e := range engines {
		e.viewSplats = team.records * len(engines)
	}
	return nil
}

// each calls f for one member after the other, until an error.
func (t *Trainer) each(f func(m *member) error) error {
	for _, m := range t.members {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// ceiling is the ceiling of the whole model.
func (t *Trainer) ceiling() (n int) {
	for _, m := range t.members {
		n += m.maxSplats
	}
	return n
}

// after returns the unit that follows u.
func (t *Trainer) after(u unit) unit {
	u.number++
	switch {
	case u.kind == unitStep && t.e.has(unitCarve) && t.refines(u.step):
		u.kind = unitCarve
	case (u.kind == unitStep || u.kind == unitCarve) && t.refines(u.step):
		u.kind = unitRefine
	case u.kind != unitReset && t.cfg.resets(u.step):
		u.kind = unitReset
	default:
		u.kind, u.step = unitStep, u.step+1
	}
	return u
}

// refines reports whether a refinement follows a step, if only one that removes.
func (t *Trainer) refines(step int) bool { return t.cfg.refines(step) || t.cfg.cleans(step) }

// setParams fills what the kernels of member m read in u, whose views are those of the members.
func (t *Trainer) setParams(m *member, f *frame, u unit, views []int) {
	if m.e.world.alone() {
		t.viewOfUnit(f.hostParams, m, u, views[0])
		return
	}
	for w, view := range views {
		var p layout.StepParams
		t.viewOfUnit(&p, m, u, view)
		if slices.Contains(views[:w], view) {
			p.LrExposure = notStepped
		}
		f.peers.set(w, &p)
	}
}

// viewOfUnit fills what the kernels of member m read of one view of u.
func (t *Trainer) viewOfUnit(p *layout.StepParams, m *member, u unit, view int) {
	at := m.e.world
	degree := min(u.step/t.cfg.SHInterval, t.cfg.SHDegree)
	viewParams(&p.View, &t.cams[view], t.cfg.Near, degree, t.cfg.Antialiased, t.cfg.backgroundOf(u.step))
	t.cfg.levelParams(p, u.step)
	p.Unit, p.Step = u.number, uint32(u.step)
	p.SeedLo, p.SeedHi = uint32(t.cfg.Seed), uint32(t.cfg.Seed>>32)^at.salt()
	t.cfg.optimiserParams(p, u.step, t.sceneScale, at.size())
	t.cfg.photoParams(p, u.step, view, m.photos.flags[view])
	t.cfg.strategyParams(p, u.step, t.sceneScale, at.size())
	p.TargetSplats = 0
	switch {
	case u.kind == unitRefine && t.cfg.cleans(u.step):
		t.cfg.cleanParams(p)
	case u.kind == unitRefine:
		p.TargetSplats = uint32(t.due(m, t.cfg.targetSplats(t.start, t.ceiling(), u.step)))
	}
	p.MaxSplats, p.SplatCapacity = uint32(m.maxSplats), uint32(m.e.model.capacity())
}

// salt decorrelates the random streams of devices that reuse splat ids.
func (p world) salt() uint32 { return uint32(p.rank) * 0x9E3779B9 }

// advance submits the next unit, after taking in what its frames were busy with.
func (t *Trainer) advance() error {
	if again, err := t.atLevel(); err != nil || again {
		return err
	}
	slot := t.queued % len(t.e.frames)
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
	t.e.team.begin()
	for i, m := range t.members {
		f := m.e.frames[slot]
		if u.number < m.from {
			f.unit, f.skipped = u, true
			continue
		}
		t.setParams(m, f, u, t.views)
		timed := u.kind == unitStep && slot == 0 && m.pace.due(t.meter != nil)
		if err := m.e.submit(f, u, timed, photos[i].src, photos[i].keep); err != nil {
			return t.e.team.broken(err)
		}
	}
	t.o.Interludes.moves(true)
	t.queued++
	t.next = t.after(u)
	return nil
}

// stagedPhoto is where a member finds the photo of its view, and what is to be submitted to keep it.
type stagedPhoto struct {
	src  vk.View
	keep *vk.Copier
}

// photosOf finds the photos of a unit, by member, and notes in t.views what the views are.
func (t *Trainer) photosOf(slot int, u unit) ([]stagedPhoto, error) {
	t.views, t.staged = t.views[:0], t.staged[:0]
	if len(t.members) > 1 && u.kind == unitStep { // the source hears of it once all know what they want
		for _, m := range t.members {
			m.photos.look(u.step)
		}
	}
	for _, m := range t.members {
		var p stagedPhoto
		view := m.photos.order.at(u.step)
		if u.kind == unitStep {
			var err error
			if view, p.src, p.keep, err = m.photos.ready(t.ctx, slot, u.step); err != nil {
				for i := range t.staged { // nothing of them is submitted
					t.members[i].photos.undo(t.views[i], u.step, t.staged[i].keep)
				}
				return nil, err
			}
		}
		t.views, t.staged = append(t.views, view), append(t.staged, p)
	}
	return t.staged, nil
}

// collect waits for a frame and takes in its report. again says that the unit, or one before it, did not fit: there is room now, and the queue starts anew
// from the first unit that failed.
func (t *Trainer) collect(slot int) (again bool, err error) {
	if !t.busy(slot) {
		return false, nil
	}
	start := time.Now()
	failed := false
	for _, m := range t.members {
		f := m.e.frames[slot]
		if err := m.e.wait(f); err != nil {
			return false, t.e.team.broken(err)
		}
		failed = failed || !f.skipped && f.hostReport.Failed != 0
	}
	t.meter.Wait(time.Since(start))
	if err := t.e.team.failure(); err != nil {
		return false, err
	}
	if failed {
		return true, t.replay(slot)
	}
	return t.takeReports(slot)
}

// busy reports whether a frame is in flight.
func (t *Trainer) busy(slot int) bool {
	for _, m := range t.members {
		if f := m.e.frames[slot]; f.ticket != 0 || f.skipped {
			return true
		}
	}
	return false
}

// takeReports takes in what the members say of a unit that all have done.
func (t *Trainer) takeReports(slot int) (again bool, err error) {
	t.progress.Splats = 0
	for _, m := range t.members {
		f := m.e.frames[slot]
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
	f := t.e.frames[slot]
	if t.progress.Splats == 0 {
		return false, fmt.Errorf("pipeline: train step %d: %w", f.unit.step+1, ErrNoSplats)
	}
	if f.unit.kind != unitStep {
		return false, nil
	}
	for _, m := range t.members {
		if err := t.takeStep(m, m.e.frames[slot]); err != nil {
			return false, err
		}
	}
	for _, m := range t.members {
		f := m.e.frames[slot]
		if f.ran == f.timed && m.pace.observe(f.ran, m.e.bands < m.e.mostBands() && !m.pace.undivided) {
			return true, t.repace(m)
		}
	}
	return false, nil
}

// takeStep takes in a member's view of a step.
func (t *Trainer) takeStep(m *member, f *frame) error {
	r := f.hostReport
	if x := float64(r.Loss); math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("pipeline: train step %d: %w: the loss is no finite number", f.unit.step+1, ErrDiverged)
	}
	t.progress.Step = f.unit.step + 1
	t.progress.Loss, t.progress.L1, t.progress.MSE, t.progress.SSIM = r.Loss, r.L1, r.Mse, r.Ssim
	t.progress.Alpha, t.progress.Counted = r.AlphaL1, int(r.NCounted)
	t.progress.View = m.photos.order.at(f.unit.step)
	t.progress.Visible, t.progress.Isects, t.progress.Level = int(r.NVisible), int(r.NIsects), t.cfg.level(f.unit.step)
	if f.ran == f.timed && m == t.member {
		t.passes.Observe(f.ran)
	}
	if m == t.member {
		t.meter.Observe(f.ran, t.progress.Visible, t.progress.Isects)
	}
	if t.progress.More = m != t.members[len(t.members)-1]; t.report != nil && t.progress.Step > t.reported {
		if !t.progress.More {
			t.reported = t.progress.Step
		}
		t.report(t.progress)
	}
	return nil
}

// drain takes in everything in flight. again says that some of it did not fit and that the queue went back to it.
func (t *Trainer) drain() (again bool, err error) {
	n := len(t.e.frames)
	for i := range n { // oldest first
		if again, err := t.collect((t.queued + i) % n); err != nil || again {
			return again, err
		}
	}
	return false, nil
}

// replay grows what members, in the frame that failed first, say is too small, and goes back to the unit that failed. Nobody has changed anything in it and
// in what was queued after it, with one exception: a refinement, and what follows it up to the next step, may have failed on some devices and be done on
// others, which do not get it again.
func (t *Trainer) replay(slot int) error {
	reports := make([]*layout.Report, len(t.members))
	back, reasons := t.next, uint32(0)
	for i, m := range t.members {
		if err := m.waitForAll(); err != nil {
			return t.e.team.broken(err)
		}
		m.pace.reset()
		failed, err := t.firstFailure(m, slot)
		if err != nil {
			return err
		}
		if failed == nil {
			m.from = t.next.number
			continue
		}
		u := m.unitInFlight(failed.FailedUnit)
		if u == nil {
			return fmt.Errorf("pipeline: internal error: unit %d failed and is not in flight", failed.FailedUnit)
		}
		reports[i], m.from = failed, u.number
		if reasons |= failed.Failed; u.number < back.number {
			back = *u
		}
	}
	if err := t.e.team.failure(); err != nil {
		return err
	}
	if reasons == layout.FailedPeer {
		return fmt.Errorf("pipeline: internal error: unit %d failed on all devices because of the others", back.number)
	}
	t.progress.Splats = sum(t.shares())
	t.next = back
	t.lastGrowth = back.step
	return t.makeRoomFor(reports, back.step)
}

// firstFailure returns a copy of m's first report of a failure among the units in flight, of which slot has the oldest, or nil, and takes in what m has done
// before that. All are waited for.
func (t *Trainer) firstFailure(m *member, slot int) (*layout.Report, error) {
	frames := m.e.frames
	oldest := frames[slot].unit.number
	for u := oldest; u < t.next.number; u++ {
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

// waitForAll waits for the units that the member has in flight.
func (m *member) waitForAll() error {
	for _, f := range m.e.frames {
		if err := m.e.wait(f); err != nil {
			return err
		}
	}
	return nil
}

// unitInFlight returns the unit with a number, nil where it is in no frame.
func (m *member) unitInFlight(number uint32) *unit {
	for _, f := range m.e.frames {
		if f.ran != nil && f.unit.number == number {
			return &f.unit
		}
	}
	return nil
}

// partly reports whether some devices have done the next unit already: a refinement for which another's memory had to grow.
func (t *Trainer) partly() bool {
	for _, m := range t.members {
		if m.from > t.next.number {
			return true
		}
	}
	return false
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// repace rebuilds a member's programs for submits of the right length. Nothing may be lost: everything in flight is taken in first.
func (t *Trainer) repace(m *member) error {
	if again, err := t.drain(); err != nil || again {
		return err // programs are built anew then, and measured again
	}
	m.e.split[unitStep] = m.pace.split
	if m.pace.moreBands {
		divided, err := m.e.divide()
		if err != nil {
			return err
		}
		m.pace.reset()
		m.pace.undivided = !divided
		m.e.split[unitStep] = nil
	}
	return m.e.buildToFit()
}

// closeAll frees what the members have.
func (t *Trainer) closeAll() (err error) {
	if t.member != nil && t.e.team != nil {
		err = t.e.team.close()
	}
	for _, m := range t.members {
		if m.photos != nil { // not so where it could not be made
			err = errors.Join(err, m.photos.close())
		}
		err = errors.Join(err, m.e.close())
	}
	if t.maps != nil {
		err = errors.Join(err, t.maps.Close())
	}
	return err
}
