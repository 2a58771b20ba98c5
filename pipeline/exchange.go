package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/shaders/layout"
)

// awaits returns the values that the Awaits of a program of kind k wait for.
func (p *programs) awaits(k recipe.Kind) []uint64 {
	switch {
	case p.team == nil:
		return nil
	case k == recipe.Step:
		return p.team.StepAwaits(p.setup.world.rank)
	case k == recipe.Render && p.setup.world.rank == 0:
		return p.team.PictureAwaits()
	}
	return nil
}

// post has the device's relay wait for the program of kind k that f was submitted with.
func (p *programs) post(f *frame, k recipe.Kind) {
	if p.team == nil {
		return
	}
	m := team.Message{End: f.ticket, Done: f.done}
	switch k {
	case recipe.Step:
		for piece := range p.setup.links.Pieces {
			m.Written[team.Visible][piece] = f.ran.PhaseTicket(phaseVisible(piece))
			m.Written[team.Grads][piece] = f.ran.PhaseTicket(p.setup.links.Pieces + 1 + piece)
		}
		if p.setup.appearances != nil && f.hostParams.LrAppearance >= 0 {
			m.Row = team.Row{Of: p.setup.appearances.common, At: int64(f.hostParams.ViewId) * appearanceBytes,
				Size: appearanceBytes}
		}
	case recipe.Render:
		m.Written[team.Visible][0] = f.ran.PhaseTicket(0)
	}
	p.team.Post(p.setup.world.rank, m)
}

// phaseVisible is the phase of a step's program in which a piece of packets is written. The first is alone in its
// phase, the others come after the Await for the one before; gradients follow them.
func phaseVisible(piece int) int {
	if piece == 0 {
		return 0
	}
	return piece + 1
}

// growPackets makes packets as large as the reports of a failed unit, by rank, ask for. Nothing may be in flight.
func (e *engine) growPackets(reports []*layout.Report) (err error) {
	if e.programs.team == nil {
		return nil
	}
	need := 0
	for _, r := range reports {
		if r != nil && r.Failed&layout.FailedPacket != 0 {
			need = max(need, int(r.Needed))
		}
	}
	if need <= e.programs.team.Records() {
		return nil
	}
	most, all := need, 0
	for _, p := range e.peers {
		most, all = max(most, p.setup.model.capacity()), all+p.setup.model.capacity()
		err = errors.Join(err, p.programs.free())
	}
	if err = errors.Join(err, e.programs.team.Resize(min(need+need/2, most))); err != nil {
		return fmt.Errorf("grow packets between devices: %w", err)
	}
	// now, rather than in another stop: a view that sees more splats of one device sees more of all
	for _, p := range e.peers {
		had := p.setup.viewSplats
		p.setup.viewSplats = max(had, min(e.programs.team.Records()*len(e.peers), all)/team.Unit*team.Unit)
		if n := p.memory.fewerIsects(p.setup.isectCapacity); n > 0 {
			p.setup.isectCapacity = n
			continue
		}
		p.setup.viewSplats = had // it grows when a view needs it
	}
	return nil
}
