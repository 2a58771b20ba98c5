package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func reorderCases() []Case {
	sizes := []int{0, 1, 255, 256, 257, chunkSplats, chunkSplats + 1, 1000}
	return []Case{
		newCase("reorder_keys", "sizes", func(t *trial) error {
			return each(sizes, func(n int) error { return checkReorderKeys(t, t.refinable(n, mix{keep: 1})) })
		}),
		newCase("reorder_keys", "edges of cells, and poison", checkReorderEdges),
		newCase("reorder_ranks", "sizes", func(t *trial) error {
			return each(sizes, func(n int) error { return checkReorderRanks(t, n) })
		}),
		newCase("reorder_out", "sizes", func(t *trial) error {
			return each(sizes, func(n int) error { return checkReorderOut(t, n) })
		}),
		newCase("reorder_back", "sizes", func(t *trial) error {
			return each(sizes, func(n int) error { return checkReorderBack(t, n, 0) })
		}),
		newCase("reorder_back", "a failed unit changes nothing",
			func(t *trial) error { return checkReorderBack(t, 400, layout.FailedSplats) }),
	}
}

func checkReorderKeys(t *trial, m *ref.Model[float32]) error {
	l := t.list()
	chunks := max(1, blocksOf(m.N, chunkSplats))
	d := l.upload(m, chunkSplats, chunks)
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(m.N)}))
	keys := output[uint32](l, "reorder_keys", chunks*chunkSplats)
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.ReorderKeys{Counters: counters, Chunk: chunk.Slice, ReorderKeys: keys.Slice,
			Push: shaders.ReorderKeysPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats},
		}, vk.Items(chunkSplats, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	got, err := keys.written(m.N)
	if err := first(err, d.untouched()); err != nil {
		return err
	}
	want := make([]uint32, m.N)
	for i := range want {
		want[i] = ref.ReorderKey([3]float32(m.Means[3*i : 3*i+3]))
	}
	return equal("reorder_keys", got, want)
}

// checkReorderEdges puts splats next to both sides of the edges of cells, far out, and where no number is.
func checkReorderEdges(t *trial) error {
	edges := []float64{0, 1e-42, 1. / 192, 5. / 192, 1, 383. / 192, 2, 2.25, 2.5, 33.5, 33.75, 34, 1e9, math.MaxFloat32}
	var at []float32
	for _, x := range edges {
		for _, near := range []float64{1 - 1e-7, 1, 1 + 1e-7} {
			at = append(at, float32(min(x*near, math.MaxFloat32)), -float32(min(x*near, math.MaxFloat32)))
		}
	}
	at = append(append(at, float32(math.Copysign(0, -1))), bad...)
	m := t.refinable(3*len(at), mix{keep: 1})
	for i := range m.N {
		m.Means[3*i+i%3] = at[i/3]
	}
	return checkReorderKeys(t, m)
}

func checkReorderRanks(t *trial, n int) error {
	l := t.list()
	order := ref.Reordered(t.uints(n, uint32(n/3+1)))
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(n)}))
	ranks := output[uint32](l, "rank_from_splat", n+100)
	l.r.Dispatch(&shaders.ReorderRanks{Counters: counters, SplatFromRank: input(l, "splat_from_rank", order),
		RankFromSplat: ranks.Slice}, vk.Items(n+100, 256))
	if err := l.run(); err != nil {
		return err
	}
	got, err := ranks.written(n)
	if err != nil {
		return err
	}
	for rank, id := range order {
		if got[id] != uint32(rank) {
			return fmt.Errorf("binding rank_from_splat: [%d]: got %d, want %d", id, got[id], rank)
		}
	}
	return nil
}

// Rows that the checks of moving move.
const (
	movedRow  = 2
	movedRows = 5
)

func checkReorderOut(t *trial, n int) error {
	l := t.list()
	m := t.refinable(n, mix{keep: 1})
	chunks := max(1, blocksOf(n, chunkSplats))
	d := l.upload(m, chunkSplats, chunks)
	capacity := chunks * chunkSplats
	ranks := make([]uint32, n)
	for i, id := range t.Perm(n) {
		ranks[i] = uint32(id)
	}
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(n)}))
	moved := output[uint32](l, "moved", movedRows*capacity)
	in := input(l, "rank_from_splat", ranks)
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.ReorderOut{Counters: counters, RankFromSplat: in, Chunk: vk.Cast[uint32](chunk.View),
			Moved: moved.Slice, Push: shaders.ReorderOutPush{FirstId: uint32(i * chunkSplats),
				ChunkSplats: chunkSplats, Capacity: uint32(capacity), Row: movedRow, NRows: movedRows},
		}, vk.Items(chunkSplats, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	if err := d.untouched(); err != nil {
		return err
	}
	want := make([]uint32, movedRows*capacity)
	for k := range want {
		want[k] = guardWord // where no splat is
	}
	for i, rank := range ranks {
		for r := range movedRows {
			want[r*capacity+int(rank)] = math.Float32bits(*modelAt(m, movedRow+r, i))
		}
	}
	return equal("moved", moved.got, want)
}

func checkReorderBack(t *trial, n int, failed uint32) error {
	l := t.list()
	chunks := max(1, blocksOf(n, chunkSplats))
	d := l.upload(t.refinable(n, mix{keep: 1}), chunkSplats, chunks)
	capacity := chunks * chunkSplats
	moved := t.uints(movedRows*capacity, 1<<30)
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(n), layout.Failed: failed}))
	in := input(l, "moved", moved)
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.ReorderBack{Counters: counters, Moved: in, Chunk: vk.Cast[uint32](chunk.View),
			Push: shaders.ReorderBackPush{FirstId: uint32(i * chunkSplats), ChunkSplats: chunkSplats,
				Capacity: uint32(capacity), Row: movedRow, NRows: movedRows},
		}, vk.Items(chunkSplats, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	if failed != 0 {
		return d.untouched()
	}
	for c, chunk := range d.chunks {
		for k, was := range chunk.start {
			id, row := c*chunkSplats+k%chunkSplats, k/chunkSplats
			want := math.Float32bits(was)
			if id < n && row >= movedRow && row < movedRow+movedRows {
				want = moved[(row-movedRow)*capacity+id]
			}
			if got := math.Float32bits(chunk.got[k]); got != want {
				return fmt.Errorf("binding chunk: row %d of splat %d: got %#x, want %#x", row, id, got, want)
			}
		}
	}
	return nil
}
