package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
)

// reduceSlots adds the gradients of a band's pairs to their splats.
func (v *view) reduceSlots(band int) {
	scratch(v.r, &v.vProjected, "v_projected", v.model.capacity())
	v.r.Dispatch(&shaders.ReduceSlots{
		Params: v.f.params, Counters: v.counters, SplatFromRank: v.splatFromRank, FirstIsect: v.firstIsect,
		Projected: v.projected, Extents: v.extents, VSlots: v.vSlots, VProjected: v.vProjected,
		Push: shaders.ReduceSlotsPush{Band: uint32(band), NBands: uint32(v.bands)},
	}, v.indirect(layout.ArgsVisible))
}
