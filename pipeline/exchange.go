package pipeline

import (
	"errors"
	"fmt"

	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/shaders/layout"
)

// awaits returns what the Awaits of a program of kind k wait for.
func (e *engine) awaits(k recipe.Kind) []uint64 {
	switch {
	case e.team == nil:
		return nil
	case k == recipe.Step:
		return e.team.StepAwaits(e.world.rank)
	case k == recipe.Render && e.world.rank == 0:
		return e.team.PictureAwaits()
	}
	return nil
}

// post has the device's relay wait for the program of kind k that f was submitted with.
func (e *engine) post(f *frame, k recipe.Kind) {
	if e.team == nil {
		return
	}
	m := team.Message{End: f.ticket, Done: f.done}
	switch k {
	case recipe.Step:
		for piece := range e.links.Pieces {
			m.Written[team.Visible][piece] = f.ran.PhaseTicket(phaseVisible(piece))
			m.Written[team.Grads][piece] = f.ran.PhaseTicket(e.links.Pieces + 1 + piece)
		}
		if e.appearances != nil && f.hostParams.LrAppearance >= 0 {
			m.Row = team.Row{Of: e.appearances.common, At: int64(f.hostParams.ViewId) * appearanceBytes,
				Size: appearanceBytes}
		}
	case recipe.Render:
		m.Written[team.Visible][0] = f.ran.PhaseTicket(0)
	}
	e.team.Post(e.world.rank, m)
}

// phaseVisible is the phase of a step's program in which a piece of packets is written. The first is alone in its
// phase, the others come after the Await for the one before; gradients follow them.
func phaseVisible(piece int) int {
	if piece == 0 {
		return 0
	}
	return piece + 1
}

// growPackets makes packets as large as the reports of a failed unit, by device, ask for. Nothing may be in flight.
func (e *engine) growPackets(reports []*layout.Report) (err error) {
	if e.team == nil {
		return nil
	}
	need := 0
	for _, r := range reports {
		if r != nil && r.Failed&layout.FailedPacket != 0 {
			need = max(need, int(r.Needed))
		}
	}
	if need <= e.team.Records() {
		return nil
	}
	most, all := need, 0
	for _, p := range e.engines {
		most, all = max(most, p.model.capacity()), all+p.model.capacity()
		err = errors.Join(err, p.startAfresh())
	}
	if err = errors.Join(err, e.team.Resize(min(need+need/2, most))); err != nil {
		return fmt.Errorf("grow packets between devices: %w", err)
	}
	// now, rather than in a stop of its own: what sees more splats of one device sees more of all
	for _, p := range e.engines {
		had := p.viewSplats
		p.viewSplats = max(had, min(e.team.Records()*len(e.engines), all)/team.Unit*team.Unit)
		if n := p.fewerIsects(p.isectCapacity); n > 0 {
			p.isectCapacity = n
			continue
		}
		p.viewSplats = had // by need, then
	}
	return nil
}
