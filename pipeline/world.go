package pipeline

import (
	"vksplat/pipeline/team"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// world is the rank of a device and the world size: how many devices train or draw one model.
type world struct{ rank, size int }

var oneDevice = world{size: 1}

func (w world) alone() bool { return w.size == 1 }

// part returns the rank's part of total things, divided as equally as possible.
func (w world) part(total int) int {
	n := total / w.size
	if w.rank < total%w.size {
		n++
	}
	return n
}

// salt decorrelates the random streams of devices that reuse splat ids.
func (w world) salt() uint32 { return uint32(w.rank) * 0x9E3779B9 }

// projections returns how many projections a view has room for: those of all splats or, in a team, of the packets of
// all shards.
func (s *setup) projections() int {
	if s.links != nil {
		return s.viewSplats
	}
	return s.model.capacity()
}

// peerParams are the parameters of all views of a step, for a device of a team.
type peerParams struct {
	ofView  []vk.Slice[layout.StepParams] // [1] each, mapped; that of the device's own view is the frame's params
	ofViews vk.Slice[layout.StepParams]   // [views], mapped
}

// allocate makes the buffers, unless the device is alone.
func (m *peerParams) allocate(e *setup, own vk.Slice[layout.StepParams]) (err error) {
	if e.world.alone() {
		return nil
	}
	for w := range e.world.size {
		p := own
		if w != e.world.rank {
			if p, err = vk.Make[layout.StepParams](e.dev, vk.Upload, 1, "params of view"); err != nil {
				return err
			}
		}
		m.ofView = append(m.ofView, p)
	}
	m.ofViews, err = vk.Make[layout.StepParams](e.dev, vk.Upload, e.world.size, "params of views")
	return err
}

func (m *peerParams) free(e *setup) {
	for w, p := range m.ofView {
		if w != e.world.rank {
			e.dev.Free(p.View)
		}
	}
	if !m.ofViews.IsZero() {
		e.dev.Free(m.ofViews.View)
	}
}

func (m *peerParams) set(w int, p *layout.StepParams) {
	vk.Host(m.ofView[w])[0] = *p
	vk.Host(m.ofViews)[w] = *p
}

// planLinks gives a setup that will have a team, and its frame, phantom links of the largest size.
func (s *setup) planLinks(f *frame) {
	if s.world.alone() {
		return
	}
	if s.links == nil {
		records := team.RoundUp(max(s.model.capacity(), 1))
		s.links = team.Phantom(s.dev, s.world.rank, s.world.size, records, s.besideWords())
		s.viewSplats = s.world.size * records
	}
	for range s.world.size {
		f.peers.ofView = append(f.peers.ofView, f.params)
	}
	f.peers.ofViews = phantom[layout.StepParams](s.dev, s.world.size, 1<<10)
}

// setPicture fills the parameters of a picture, which is the first device's.
func (m *peerParams) setPicture(p *layout.StepParams) {
	if len(m.ofView) > 0 {
		m.set(0, p)
	}
}

// clearFailures makes all devices ready after a picture that failed and is not drawn again.
func (e *engine) clearFailures() error {
	for _, m := range e.peers {
		if err := m.setup.setCounters(m.programs.frames[0].hostReport.NSplats); err != nil {
			return err
		}
	}
	return nil
}
