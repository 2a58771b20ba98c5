package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// rasterizeBwd computes the gradient of every (tile, splat) pair of the band that was rasterized last.
func (v *view) rasterizeBwd() {
	v.vSlots = vk.ScratchOf[layout.ProjectedGrad](v.r, "v_slots", v.s.isectCapacity)
	v.vBesideSlots = vk.Cast[float32](v.vSlots.View) // not written
	if words := v.s.besideWords(); words > 0 {
		v.vBesideSlots = vk.ScratchOf[float32](v.r, "v_beside_slots", words*v.s.isectCapacity)
	}
	var pass vk.Pass = &shaders.RasterizeBwd{
		Params: v.f.params, TileOffsets: v.tileOffsets, SlotFromIsect: v.slotFromIsect,
		SplatFromSlot: v.splatFromSlot, Shapes: v.shapes, Paints: v.paints, Render: v.render, LastIds: v.lastIDs,
		States: v.states, Touched: v.touched, VRender: v.vShown, TileFromBucket: v.buckets,
		VSlots: vk.Cast[float32](v.vSlots.View), VAbsSlots: vk.Cast[[2]float32](v.vBesideSlots.View),
		Spec: shaders.RasterizeBwdSpec{WorkgroupSize: backwardLanes, SubgroupSize: v.s.raster.subgroup,
			Absgrad: v.s.strategy.variants().absgrad, HandRound: v.s.raster.handRound, BucketSize: v.s.raster.bucket,
			PackedStates: v.s.model.Mixed},
	}
	if v.s.depths != nil { // with the gradient by the sums of inverse depths
		pass = vk.Derive(pass, func(p *shaders.RasterizeBwdDepth) {
			p.VBesideSlots = vk.Cast[[3]float32](v.vBesideSlots.View)
			p.DepthKeys, p.Depths = v.depthKeys, v.depthSums
		})
	}
	v.r.Dispatch(pass, v.indirect(layout.ArgsBuckets))
}
