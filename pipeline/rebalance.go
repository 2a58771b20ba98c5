package pipeline

import (
	"errors"

	"vksplat/pipeline/recipe"
	"vksplat/vk"
)

// drift is the fraction by which a shard may exceed its even size before splats move: refinement adds and removes
// splats where they are.
const drift = 0.1

// rebalance makes the shards equal again before a refinement, if they have drifted apart. It depends on the numbers
// after the last refinement alone, so that it happens at the same step in every run.
func (q *queue) rebalance() (again bool, err error) {
	if len(q.shards.list) == 1 || q.next.Kind != recipe.Refine || q.balanced == q.next.Number {
		return false, nil
	}
	if again, err := q.drain(); err != nil || again {
		return again, err
	}
	q.balanced = q.next.Number // not again if the refinement has to be repeated
	for _, m := range evenOut(q.shards.sizes(), q.shards.ceilings()) {
		if err := move(q.shards.list[m.from], q.shards.list[m.to], m.n); err != nil {
			return false, err
		}
	}
	return false, nil
}

// shift moves n splats from one device to another.
type shift struct{ from, to, n int }

// evenSizes divides total splats among devices as equally as their ceilings allow.
func evenSizes(total int, ceilings []int) []int {
	sizes := make([]int, len(ceilings))
	for left := total; left > 0; {
		var open []int
		for i, c := range ceilings {
			if sizes[i] < c {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			break
		}
		given := 0
		for k, i := range open {
			n := min(world{k, len(open)}.part(left), ceilings[i]-sizes[i])
			sizes[i], given = sizes[i]+n, given+n
		}
		left -= given
	}
	return sizes
}

// evenOut returns the shifts that make shards even, none if all are within the drift.
func evenOut(sizes, ceilings []int) (moves []shift) {
	even := evenSizes(sum(sizes), ceilings)
	over := make([]int, len(sizes)) // beyond the even size
	far := false
	for i, n := range sizes {
		over[i] = n - even[i]
		far = far || float64(n) > (1+drift)*float64(even[i])
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

// move moves the last n splats of one shard, in their order, to the end of another, with all of their state. Nothing
// may be in flight.
func move(from, to *shard, n int) (err error) {
	if err := to.reserve(to.splats + n); err != nil {
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
		if err := from.e.setup.dev.RunOnce(r, "read splats that move"); err != nil {
			return err
		}
		copy(up.View.Host(), down.View.Host())
		r = vk.NewRecorder(to.e.setup.dev)
		copyColumns(r, up, dest, at, rows, some, true)
		if err := to.e.setup.dev.RunOnce(r, "write splats that move"); err != nil {
			return err
		}
		done += some
	}
	from.splats, to.splats = from.splats-n, to.splats+n
	return errors.Join(from.e.setup.setCounters(uint32(from.splats)), to.e.setup.setCounters(uint32(to.splats)))
}

func (m *shard) reserve(n int) error {
	if n <= m.e.setup.model.capacity() {
		return nil
	}
	m.e.programs.beforeAlloc()
	if err := m.e.memory.growModel(n, max(n, m.maxSplats)); err != nil {
		return err
	}
	return m.e.memory.buildToFit()
}

// chunkOf returns the chunk with room for splat i, and its column there.
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
