package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/vk"
)

// member is a device that trains: its share of the model, and the photos of its views.
type member struct {
	e         *engine
	photos    *devicePhotos
	plan      *Plan
	maxSplats int      // ceiling of its share
	splats    int      // of its share, by the last unit that the host has taken in
	relieved  shortage // what it had when memory last was short
	pace      pace
	from      uint32 // number of the first unit that it has not done; what is before is not given to it again
}

// newMembers plans the memory of devices and makes a member of each, without what it has there.
func newMembers(devices []*Device, source photos.Source, r *training, o *TrainerOptions, at start) ([]*member, error) {
	if slices.Contains(at.deal.splats, 0) {
		return nil, fmt.Errorf("start training: %w: %d splats for %d devices", errFewSplats, at.splats,
			len(devices))
	}
	plans, portions, err := planTeam(devices, r.cams, at.splats, at.deal, r.cfg, *o)
	if err != nil {
		return nil, err
	}
	var list []*member
	for i, d := range devices {
		plan := plans[i]
		s, err := trainingShape(d.dev, world{i, len(devices)}, r.cams, source, &r.cfg, o)
		if err != nil {
			return nil, err
		}
		e := newEngine(s)
		e.memory.isectPlan = plan.Isects
		e.setup.model.unit, e.setup.model.growth = plan.ChunkSplats, plan.growth
		e.setup.compare.shrunk = r.cfg.Level(at.step) > 0
		m := &member{e: e, plan: plan, splats: portions[i].splats}
		// A run that goes on keeps its ceiling even where less was planned: it may never get there.
		m.maxSplats = max(plan.Ceiling, portions[i].ceiling)
		m.pace.off = d.dev.Info().Type == vk.CPU
		list = append(list, m)
	}
	return list, nil
}

// begin makes what a member has on its device beside the splats.
func (m *member) begin(source photos.Source, r *training, o *TrainerOptions) (err error) {
	if err := m.e.allocate(inFlight); err != nil {
		return err
	}
	if m.e.setup.has(recipe.Carve) {
		if err := m.e.setup.loadVoters(r.cams, o.Depths); err != nil {
			return err
		}
	}
	m.photos, err = newDevicePhotos(m.e, r.cams, source, &r.cfg, m.plan, *o)
	if err == nil {
		m.e.setup.target = m.photos.bound
	}
	return err
}

// dropPhotos gives the photos' cache back. Nothing may be in flight, and there are no programs.
func (m *member) dropPhotos() error {
	err := m.photos.dropCache()
	m.e.setup.target = m.photos.bound
	return err
}

// close frees what the member has.
func (m *member) close() (err error) {
	if m.photos != nil { // not so where it could not be made
		err = m.photos.close()
		m.e.setup.target = vk.Slice[uint32]{} // was theirs
	}
	return errors.Join(err, m.e.close())
}

// waitForAll waits for the units that the member has in flight.
func (m *member) waitForAll() error {
	for _, f := range m.e.programs.frames {
		if err := m.e.programs.wait(f); err != nil {
			return err
		}
	}
	return nil
}

// unitInFlight returns the unit with a number, nil where it is in no frame.
func (m *member) unitInFlight(number uint32) *recipe.Unit {
	for _, f := range m.e.programs.frames {
		if f.ran != nil && f.unit.Number == number {
			return &f.unit
		}
	}
	return nil
}
