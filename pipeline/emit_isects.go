package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// emitIsects writes the (tile, splat) pairs of a band and returns their tile ids and slots, which are to be sorted.
func (v *view) emitIsects(band int) (ids, slots vk.Slice[uint32]) {
	n := v.s.isectCapacity
	ids = vk.ScratchOf[uint32](v.r, "tile_ids", n)
	slots = vk.ScratchOf[uint32](v.r, "slot_ids", n)
	v.splatFromSlot = vk.ScratchOf[uint32](v.r, "splat_from_slot", n)
	v.r.Dispatch(&shaders.EmitIsects{
		Params: v.f.params, Counters: v.s.counters, SplatFromRank: v.splatFromRank, FirstIsect: v.firstIsect,
		Shapes:  v.shapes,
		TileIds: ids, SplatFromSlot: v.splatFromSlot, SlotIds: slots,
		Push: shaders.EmitIsectsPush{Band: uint32(band), NBands: uint32(v.s.bands)},
		Spec: shaders.EmitIsectsSpec{SubgroupSize: v.s.sort.subgroup},
	}, v.indirect(layout.ArgsSortIsects))
	return ids, slots
}
