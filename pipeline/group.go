package pipeline

import (
	"errors"

	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/team"
	"vksplat/vk"
)

// group is the devices that train one model, a member each. One device alone is a group as well, and no team.
type group struct {
	members []*member  // the first one's device makes pictures
	looks   *vk.Shared // what a team learns of the photos' appearance; nil otherwise
}

// each calls f for one member after the other, until an error.
func (g *group) each(f func(m *member) error) error {
	for _, m := range g.members {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// ceiling is the ceiling of the whole model.
func (g *group) ceiling() (n int) {
	for _, m := range g.members {
		n += m.maxSplats
	}
	return n
}

// ceilings returns the most splats of each member.
func (g *group) ceilings() (list []int) {
	for _, m := range g.members {
		list = append(list, m.maxSplats)
	}
	return list
}

// shares returns the splats of each member.
func (g *group) shares() (list []int) {
	for _, m := range g.members {
		list = append(list, m.splats)
	}
	return list
}

// due is what a member is to have of so many splats.
func (g *group) due(m *member, total int) int {
	if len(g.members) == 1 {
		return total
	}
	return dues(total, g.ceilings())[m.e.setup.world.rank]
}

// join makes a team of the members, once they have their splats.
func (g *group) join() error {
	if len(g.members) == 1 {
		return nil
	}
	var engines []*engine
	var devices []*vk.Device
	// of the smallest share: all devices planned views for it; packets and views grow by need
	records := g.members[0].splats
	for _, m := range g.members {
		engines, devices = append(engines, m.e), append(devices, m.e.setup.dev)
		records = min(records, m.splats)
	}
	joined, err := team.New(devices, team.Options{
		Records: records, Beside: engines[0].setup.besideWords(), InFlight: inFlight,
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

// busy reports whether a frame is in flight.
func (g *group) busy(slot int) bool {
	for _, m := range g.members {
		if f := m.e.programs.frames[slot]; f.ticket != 0 || f.skipped {
			return true
		}
	}
	return false
}

// partly reports whether some devices have done the unit that is next already: a refinement for which another's memory
// had to grow.
func (g *group) partly(next uint32) bool {
	for _, m := range g.members {
		if m.from > next {
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

// records returns what checkpoints say of the devices.
func (g *group) records() (list []checkpoint.DeviceRecord) {
	for _, m := range g.members {
		list = append(list, checkpoint.RecordOf(m.e.setup.dev))
	}
	return list
}

// shareRecords returns what checkpoints say of a team.
func (g *group) shareRecords() (list []checkpoint.ShareRecord) {
	if len(g.members) == 1 {
		return nil
	}
	for i, d := range g.records() {
		m := g.members[i]
		list = append(list, checkpoint.ShareRecord{Device: d, Splats: m.splats, Most: m.maxSplats})
	}
	return list
}

// liveState returns the state where training has it, with what it has beside the splats.
func (g *group) liveState(extra []checkpoint.Extra) (list checkpoint.State) {
	for i, m := range g.members {
		x := m.e.setup.model
		s := &checkpoint.Share{Dev: x.dev, Rows: x.Rows, N: m.splats, Parts: x.parts(m.splats)}
		if i == 0 {
			s.Extra = extra
		} else if m.e.setup.histories != nil {
			s.Extra = []checkpoint.Extra{m.e.setup.histories.state()}
		}
		list = append(list, s)
	}
	return list
}

// closeAll frees what the members have.
func (g *group) closeAll() (err error) {
	if len(g.members) > 0 && g.members[0].e.programs.team != nil {
		err = g.members[0].e.programs.team.Close()
		for _, m := range g.members {
			m.e.programs.team, m.e.setup.links = nil, nil
		}
	}
	for _, m := range g.members {
		err = errors.Join(err, m.close())
	}
	if g.looks != nil {
		err = errors.Join(err, g.looks.Close())
	}
	return err
}
