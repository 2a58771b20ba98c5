package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// reorderRows is how many rows of the model move at once: as many words a splat as a projection has, for which there is
// room in every plan.
const reorderRows = 9

// reorderBits is how many bits the keys of reorder_keys differ in.
const reorderBits = 30

// reorder puts the splats in order along a curve through space. Passes that gather the splats of a view or of a tile
// read whole sectors of memory, and in no order use a few bytes of each.
func (v *view) reorder() {
	n := v.s.model.capacity()
	keys := vk.ScratchOf[uint32](v.r, "reorder_keys", n)
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.ReorderKeys{
			Counters: v.s.counters, Chunk: c.Slice, ReorderKeys: keys,
			Push: shaders.ReorderKeysPush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats)},
		}, vk.Items(c.splats, 256))
	}
	_, order := v.radixSort(sortJob{
		name: "reorder sort", keys: keys, drop: true, keyBits: reorderBits, slot: layout.NVisible,
		args: layout.ArgsSortVisible, tallies: v.tallies.depth,
		spare: [2]vk.Slice[uint32]{vk.ScratchOf[uint32](v.r, "reorder sort keys", n),
			vk.ScratchOf[uint32](v.r, "reorder sort values", n)},
	})
	ranks := vk.ScratchOf[uint32](v.r, "rank_from_splat", n)
	v.r.Dispatch(&shaders.ReorderRanks{Counters: v.s.counters, SplatFromRank: order, RankFromSplat: ranks},
		v.indirect(layout.ArgsSplats))
	rows := v.s.model.NRows()
	for row := 0; row < rows; row += reorderRows {
		v.moveRows(ranks, row, min(reorderRows, rows-row))
	}
}

// moveRows moves n rows of the model, the first of which is row.
func (v *view) moveRows(ranks vk.Slice[uint32], row, n int) {
	capacity := v.s.model.capacity()
	moved := vk.ScratchOf[uint32](v.r, "moved", n*capacity)
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.ReorderOut{
			Counters: v.s.counters, RankFromSplat: ranks, Chunk: vk.Cast[uint32](c.View), Moved: moved,
			Push: shaders.ReorderOutPush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats),
				Capacity: uint32(capacity), Row: uint32(row), NRows: uint32(n)},
		}, vk.Items(c.splats, 256))
	}
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.ReorderBack{
			Counters: v.s.counters, Moved: moved, Chunk: vk.Cast[uint32](c.View),
			Push: shaders.ReorderBackPush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats),
				Capacity: uint32(capacity), Row: uint32(row), NRows: uint32(n)},
		}, vk.Items(c.splats, 256))
	}
}
