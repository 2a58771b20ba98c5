package pipeline

import (
	"fmt"

	"vksplat/pipeline/team"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// membership is what an engine knows of the team that it belongs to. Its zero value is that of a device that trains
// alone.
type membership struct {
	world      world
	team       *team.Team  // nil before there is one
	engines    []*engine   // of the team, by rank; likewise
	links      *team.Links // likewise
	viewSplats int         // projections that a view has room for
}

// world is a device's rank among the n of a team. The zero value is that of a device that trains alone.
type world struct{ rank, n int }

// alone reports whether there are no others.
func (p world) alone() bool { return p.n < 2 }

// size is how many devices there are.
func (p world) size() int { return max(p.n, 1) }

// share returns how many of total things are this device's, if they are dealt out one by one.
func (p world) share(total int) int {
	n := total / p.size()
	if p.rank < total%p.size() {
		n++
	}
	return n
}

// salt decorrelates the random streams of devices that reuse splat ids.
func (p world) salt() uint32 { return uint32(p.rank) * 0x9E3779B9 }

// projections is how many projections a view has room for: those of all splats, or in a team those that the view's
// packets have together.
func (e *engine) projections() int {
	if e.links != nil {
		return e.viewSplats
	}
	return e.model.capacity()
}

// peerParams are the parameters of all views of a step, for a device of a team.
type peerParams struct {
	ofView  []vk.Slice[layout.StepParams] // [1] each, mapped; that of the device's own view is the frame's params
	ofViews vk.Slice[layout.StepParams]   // [views], mapped
}

// allocate makes what frames of a device of a team have beside the others.
func (m *peerParams) allocate(e *engine, own vk.Slice[layout.StepParams]) (err error) {
	if e.world.alone() {
		return nil
	}
	for w := range e.world.n {
		p := own
		if w != e.world.rank {
			if p, err = vk.Make[layout.StepParams](e.dev, vk.Upload, 1, "params of view"); err != nil {
				return err
			}
		}
		m.ofView = append(m.ofView, p)
	}
	m.ofViews, err = vk.Make[layout.StepParams](e.dev, vk.Upload, e.world.n, "params of views")
	return err
}

// free gives the memory back.
func (m *peerParams) free(e *engine) {
	for w, p := range m.ofView {
		if w != e.world.rank {
			e.dev.Free(p.View)
		}
	}
	if !m.ofViews.IsZero() {
		e.dev.Free(m.ofViews.View)
	}
}

// set fills the parameters of view w.
func (m *peerParams) set(w int, p *layout.StepParams) {
	vk.Host(m.ofView[w])[0] = *p
	vk.Host(m.ofViews)[w] = *p
}

// planLinks gives an engine that has no team yet, but is to have one, links and a frame that are not there, for as much
// as there can be.
func (e *engine) planLinks(f *frame) {
	if e.world.alone() {
		return
	}
	if e.links == nil {
		records := team.RoundUp(max(e.model.capacity(), 1))
		e.links = team.Phantom(e.dev, e.world.rank, e.world.n, records, e.besideWords())
		e.viewSplats = e.world.n * records
	}
	for range e.world.n {
		f.peers.ofView = append(f.peers.ofView, f.params)
	}
	f.peers.ofViews = phantom[layout.StepParams](e.dev, e.world.n, 1<<10)
}

// setPicture fills the parameters of a picture, which is the first device's.
func (m *peerParams) setPicture(p *layout.StepParams) {
	if len(m.ofView) > 0 {
		m.set(0, p)
	}
}

// peers returns the engines of the team, e alone without one.
func (e *engine) peers() []*engine {
	if e.team == nil {
		return []*engine{e}
	}
	return e.engines
}

// clearFailures makes all devices ready after a picture that failed and is not to be drawn again.
func (e *engine) clearFailures() error {
	for _, m := range e.peers() {
		if err := m.setCounters(m.frames[0].hostReport.NSplats); err != nil {
			return err
		}
	}
	return nil
}

// growView makes room for n projections, and for some more.
func (e *engine) growView(n int) error {
	if err := e.startAfresh(); err != nil {
		return err
	}
	most := n
	for _, m := range e.peers() {
		most += m.model.capacity()
	}
	e.viewSplats = team.RoundUp(min(n+n/4, most-n))
	e.isectCapacity = e.fewerIsects(e.isectCapacity)
	if e.isectCapacity == 0 {
		return fmt.Errorf("grow view: %w: %d visible splats leave nothing for their pairs", ErrTooSmall, n)
	}
	return nil
}
