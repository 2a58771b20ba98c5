package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// reduceSlots adds the gradients of a band's pairs to their splats.
func (v *view) reduceSlots(band int) {
	scratch(v.r, &v.vProjected, "v_projected", v.s.projections())
	if words := v.s.besideWords(); words > 0 {
		scratch(v.r, &v.vBeside, "v_beside", words*v.s.projections())
	} else {
		v.vBeside = vk.Cast[float32](v.vProjected.View) // not touched
	}
	var pass vk.Pass = &shaders.ReduceSlots{
		Params: v.f.params, Counters: v.s.counters, SplatFromRank: v.splatFromRank, FirstIsect: v.firstIsect,
		Shapes: v.shapes, VSlots: vk.Cast[float32](v.vSlots.View),
		VProjected: vk.Cast[float32](v.vProjected.View),
		VAbsSlots:  v.vBesideSlots, VAbsMean2d: v.vBeside,
		Push: shaders.ReduceSlotsPush{Band: uint32(band), NBands: uint32(v.s.bands)},
		Spec: shaders.ReduceSlotsSpec{Absgrad: v.s.strategy.variants().absgrad},
	}
	if v.s.depths != nil {
		pass = vk.Derive(pass, func(p *shaders.ReduceSlotsDepth) {
			p.VBesideSlots, p.VBeside = v.vBesideSlots, v.vBeside
		})
	}
	v.r.Dispatch(pass, v.indirect(layout.ArgsReduce))
}
