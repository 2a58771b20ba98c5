package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/vk"
)

// shard is the part of the model on one device, and the photos of that device's views.
type shard struct {
	e         *engine
	photos    *devicePhotos
	plan      *Plan
	maxSplats int      // its ceiling
	splats    int      // after the last unit that was collected
	relieved  shortage // what it had when memory was short last
	pace      pace
	from      uint32 // number of the first unit that it has not done; units before that are not submitted to it again
}

// shards are all parts of the model, by rank. One device has one, and no team.
type shards struct {
	list        []*shard
	first       *shard     // makes pictures
	appearances *vk.Shared // of a team's photos; nil with one device
}

// newShards plans the memory of the devices and makes their shards, without buffers.
func newShards(devices []*Device, source photos.Source, run *training, o *TrainerOptions, s start) (*shards, error) {
	if slices.Contains(s.known.splats, 0) {
		return nil, fmt.Errorf("start training: %w: %d splats for %d devices", errFewSplats, s.splats, len(devices))
	}
	plans, portions, err := planShards(devices, run.cams, s.splats, s.known, run.cfg, *o)
	if err != nil {
		return nil, err
	}
	all := &shards{}
	for i, d := range devices {
		setup, err := trainingSetup(d.dev, world{i, len(devices)}, run.cams, source, &run.cfg, o)
		if err != nil {
			return nil, err
		}
		e, plan := newEngine(setup), plans[i]
		e.memory.isectPlan = plan.Isects
		setup.model.unit, setup.model.growth = plan.ChunkSplats, plan.growth
		setup.compare.shrunk = run.cfg.Level(s.step) > 0
		// A resumed run keeps its ceiling even where the plan has less: it may never get there.
		m := &shard{e: e, plan: plan, splats: portions[i].splats, maxSplats: max(plan.Ceiling, portions[i].ceiling)}
		m.pace.off = d.dev.Info().Type == vk.CPU
		all.list = append(all.list, m)
	}
	all.first = all.list[0]
	return all, nil
}

// begin makes the shard's buffers besides the splats.
func (m *shard) begin(source *photos.Share, run *training, o *TrainerOptions) (err error) {
	if err := m.e.allocate(inFlight); err != nil {
		return err
	}
	if m.e.setup.has(recipe.Carve) {
		if err := m.e.setup.loadVoters(run.cams, o.Depths); err != nil {
			return err
		}
	}
	m.photos, err = newDevicePhotos(m.e.setup, run.cams, source, &run.cfg, m.plan, *o)
	if err == nil {
		m.e.setup.target = m.photos.bound
	}
	return err
}

// dropPhotos frees the cache of photos. Nothing may be in flight, and there are no programs.
func (m *shard) dropPhotos() error {
	err := m.photos.dropCache()
	m.e.setup.target = m.photos.bound
	return err
}

func (m *shard) close() (err error) {
	if m.photos != nil { // begin may have failed
		err = m.photos.close()
		m.e.setup.target = vk.Slice[uint32]{} // was theirs
	}
	return errors.Join(err, m.e.close())
}

// unitInFlight returns the unit with a number, or nil.
func (m *shard) unitInFlight(number uint32) *recipe.Unit {
	for _, f := range m.e.programs.frames {
		if f.ran != nil && f.unit.Number == number {
			return &f.unit
		}
	}
	return nil
}

// each calls f for one shard after the other, until an error.
func (s *shards) each(f func(m *shard) error) error {
	for _, m := range s.list {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

func (s *shards) ceiling() int { return sum(s.ceilings()) }

func (s *shards) ceilings() (list []int) {
	for _, m := range s.list {
		list = append(list, m.maxSplats)
	}
	return list
}

func (s *shards) sizes() (list []int) {
	for _, m := range s.list {
		list = append(list, m.splats)
	}
	return list
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// target returns how many of total splats a shard is to have.
func (s *shards) target(m *shard, total int) int {
	if len(s.list) == 1 {
		return total
	}
	return evenSizes(total, s.ceilings())[m.e.setup.world.rank]
}

// join makes a team of the devices, once their shards are loaded.
func (s *shards) join() error {
	if len(s.list) == 1 {
		return nil
	}
	var engines []*engine
	for _, m := range s.list {
		engines = append(engines, m.e)
	}
	joined, err := team.New(s.devices(), team.Options{
		// all devices planned views for the smallest shard; packets and views grow by need
		Records: slices.Min(s.sizes()), Beside: engines[0].setup.besideWords(), InFlight: inFlight,
	})
	if err != nil {
		return err
	}
	for rank, e := range engines {
		e.programs.team, e.peers, e.setup.links = joined, engines, joined.Links(rank)
		e.setup.viewSplats = joined.Records() * len(engines)
	}
	return nil
}

func (s *shards) devices() (list []*vk.Device) {
	for _, m := range s.list {
		list = append(list, m.e.setup.dev)
	}
	return list
}

func (s *shards) busy(slot int) bool {
	return slices.ContainsFunc(s.list, func(m *shard) bool {
		f := m.e.programs.frames[slot]
		return f.ticket != 0 || f.skipped
	})
}

// partlyDone reports whether some devices have already done the next unit: a refinement for which the memory of another
// had to grow.
func (s *shards) partlyDone(next uint32) bool {
	return slices.ContainsFunc(s.list, func(m *shard) bool { return m.from > next })
}

func (s *shards) deviceRecords() (list []checkpoint.DeviceRecord) {
	for _, d := range s.devices() {
		list = append(list, checkpoint.RecordOf(d))
	}
	return list
}

// sameDevices reports whether the devices give the same bytes as those that wrote a checkpoint.
func (s *shards) sameDevices(h *checkpoint.Header) bool {
	return slices.EqualFunc(h.Devices(), s.deviceRecords(), checkpoint.DeviceRecord.Same)
}

// shardRecords returns what checkpoints say of the shards of a team.
func (s *shards) shardRecords() (list []checkpoint.ShareRecord) {
	if len(s.list) == 1 {
		return nil
	}
	for i, d := range s.deviceRecords() {
		list = append(list, checkpoint.ShareRecord{Device: d, Splats: s.list[i].splats, Most: s.list[i].maxSplats})
	}
	return list
}

// state returns the state of all shards, in place; extra is state besides the splats.
func (s *shards) state(extra []checkpoint.Extra) (list checkpoint.State) {
	for i, m := range s.list {
		x := m.e.setup.model
		part := &checkpoint.Share{Dev: x.dev, Rows: x.Rows, N: m.splats, Parts: x.parts(m.splats)}
		if i == 0 {
			part.Extra = extra
		} else if m.e.setup.histories != nil {
			part.Extra = []checkpoint.Extra{m.e.setup.histories.state()}
		}
		list = append(list, part)
	}
	return list
}

// timeSteps gives all steps timestamps, or only some of the first frame's, as usual. Nothing may be in flight.
func (s *shards) timeSteps(all bool) error {
	return s.each(func(m *shard) error {
		if err := m.e.programs.close(); err != nil {
			return err
		}
		m.e.programs.timeAll = all
		return m.e.memory.buildToFit()
	})
}

// timeCopies turns timestamps of the copies of photos on or off.
func (s *shards) timeCopies(on bool) error {
	return s.each(func(m *shard) error {
		for i, f := range m.e.programs.frames {
			if err := errors.Join(f.copier.SetTimed(on), m.photos.keepers[i].SetTimed(on)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *shards) close() (err error) {
	if t := s.first.e.programs.team; t != nil {
		err = t.Close()
		for _, m := range s.list {
			m.e.programs.team, m.e.setup.links = nil, nil
		}
	}
	for _, m := range s.list {
		err = errors.Join(err, m.close())
	}
	if s.appearances != nil {
		err = errors.Join(err, s.appearances.Close())
	}
	return err
}
