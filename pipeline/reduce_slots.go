package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// reduceSlots adds the gradients of a band's pairs to their splats.
func (v *view) reduceSlots(band int) {
	scratch(v.r, &v.vProjected, "v_projected", v.projections())
	if v.strategy.absgrad {
		scratch(v.r, &v.vAbsMean2D, "v_abs_mean2d", v.projections())
	} else {
		v.vAbsMean2D = vk.Cast[[2]float32](v.vProjected.View) // not touched
	}
	v.r.Dispatch(&shaders.ReduceSlots{
		Params: v.f.params, Counters: v.counters, SplatFromRank: v.splatFromRank, FirstIsect: v.firstIsect,
		Projected: v.projected, Extents: v.extents, VSlots: vk.Cast[float32](v.vSlots.View),
		VProjected: vk.Cast[float32](v.vProjected.View),
		VAbsSlots:  vk.Cast[float32](v.vAbsSlots.View), VAbsMean2d: vk.Cast[float32](v.vAbsMean2D.View),
		Push: shaders.ReduceSlotsPush{Band: uint32(band), NBands: uint32(v.bands)},
		Spec: shaders.ReduceSlotsSpec{Absgrad: v.strategy.absgrad},
	}, v.indirect(layout.ArgsReduce))
}
