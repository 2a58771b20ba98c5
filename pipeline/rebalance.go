package pipeline

import (
	"errors"

	"vksplat/pipeline/recipe"
	"vksplat/vk"
)

// drift is the part of a mean share by which a share may be larger before splats move: refinement makes and removes
// them where they are.
const drift = 0.1

// rebalance makes the shares of a team equal again, before a refinement, where they have drifted apart. again says that
// something in flight did not fit, and that the queue went back to it. What it does follows from the numbers after the
// last refinement alone, so that it happens at the same step in every run.
func (t *Trainer) rebalance() (again bool, err error) {
	if len(t.members) == 1 || t.next.Kind != recipe.Refine || t.evened == t.next.Number {
		return false, nil
	}
	if again, err := t.drain(); err != nil || again {
		return again, err
	}
	t.evened = t.next.Number // not once more where the refinement has to be done again
	moves := evenOut(t.shares(), t.ceilings())
	for _, m := range moves {
		if err := move(t.members[m.from], t.members[m.to], m.n); err != nil {
			return false, err
		}
	}
	return false, nil
}

// shift is that n splats go from one device to another.
type shift struct{ from, to, n int }

// dues deals total splats out to devices as equally as their ceilings let.
func dues(total int, ceilings []int) []int {
	due := make([]int, len(ceilings))
	for left := total; left > 0; {
		var open []int
		for i, c := range ceilings {
			if due[i] < c {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			break
		}
		given := 0
		for k, i := range open {
			n := min(world{k, len(open)}.part(left), ceilings[i]-due[i])
			due[i], given = due[i]+n, given+n
		}
		left -= given
	}
	return due
}

// evenOut returns what has to move so that shares are as they are due, nothing where none is larger by more than the
// drift that is let pass.
func evenOut(shares, ceilings []int) (moves []shift) {
	due := dues(sum(shares), ceilings)
	over := make([]int, len(shares)) // what each has beyond its due
	far := false
	for i, n := range shares {
		over[i] = n - due[i]
		far = far || float64(n) > (1+drift)*float64(due[i])
	}
	if !far {
		return nil
	}
	for from := range over {
		for to := range over {
			if n := min(over[from], -over[to]); n > 0 {
				over[from], over[to] = over[from]-n, over[to]+n
				moves = append(moves, shift{from, to, n})
			}
		}
	}
	return moves
}

// move takes the last n splats of one member, in their order, to the end of another, with all of their state. Nothing
// may be in flight.
func move(from, to *member, n int) (err error) {
	if err := to.makeRoom(to.splats + n); err != nil {
		return err
	}
	rows := from.e.setup.model.NRows()
	piece := max(1, mostStaging/4/rows)
	down, err := vk.Make[float32](from.e.setup.dev, vk.Readback, rows*piece, "splats that move")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.e.setup.dev.Free(down.View)) }()
	up, err := vk.Make[float32](to.e.setup.dev, vk.Upload, rows*piece, "splats that move")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.e.setup.dev.Free(up.View)) }()
	for done := 0; done < n; {
		source, first := from.e.setup.model.chunkOf(from.splats - n + done)
		dest, at := to.e.setup.model.chunkOf(to.splats + done)
		some := min(n-done, piece, source.splats-first, dest.splats-at)
		r := vk.NewRecorder(from.e.setup.dev)
		copyColumns(r, down, source, first, rows, some, false)
		if err := runOnce(from.e.setup.dev, r, "read splats that move"); err != nil {
			return err
		}
		copy(up.View.Host(), down.View.Host())
		r = vk.NewRecorder(to.e.setup.dev)
		copyColumns(r, up, dest, at, rows, some, true)
		if err := runOnce(to.e.setup.dev, r, "write splats that move"); err != nil {
			return err
		}
		done += some
	}
	from.splats, to.splats = from.splats-n, to.splats+n
	return errors.Join(from.e.setup.setCounters(uint32(from.splats)), to.e.setup.setCounters(uint32(to.splats)))
}

// makeRoom makes room for n splats on a member's device.
func (m *member) makeRoom(n int) error {
	if n <= m.e.setup.model.capacity() {
		return nil
	}
	m.e.programs.beforeAlloc()
	if err := m.e.memory.growModel(n, max(n, m.maxSplats)); err != nil {
		return err
	}
	return m.e.memory.buildToFit()
}

// chunkOf returns the chunk that splat i is in, or would be, and its column there.
func (m *model) chunkOf(i int) (c chunk, column int) {
	for _, c := range m.chunks {
		if i < c.first+c.splats {
			return c, i - c.first
		}
	}
	return chunk{}, 0
}

// copyColumns records the copy of some columns of a chunk, from first on, from or to a packed buffer.
func copyColumns(r *vk.Recorder, packed vk.Slice[float32], c chunk, first, rows, some int, up bool) {
	for row := range rows {
		here, there := packed.At(row*some, some).View, c.At(row*c.splats+first, some).View
		if up {
			r.Copy(there, here)
		} else {
			r.Copy(here, there)
		}
	}
}
