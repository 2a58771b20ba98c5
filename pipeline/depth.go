package pipeline

import (
	"vksplat/pipeline/recipe"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// comparesDepths reports whether the unit blends depth: a step's picture does where depths or normals are known.
func (v *view) comparesDepths() bool { return v.s.depths != nil && v.kind == recipe.Step }

func (o *TrainerOptions) comparesDepths() bool { return o.Known.used() || o.Normals.used() }

// rasterizeDepth is rasterize that also blends the inverse of splats' depths.
func (v *view) rasterizeDepth(p *shaders.Rasterize) {
	// Of all bands: the backward pass reads what the first pass over the picture wrote, and the states of its band.
	scratch(v.r, &v.depthSums, "depth_sums", 2*v.size.maxPixels+v.s.raster.states(v.s.isectCapacity))
	v.r.Dispatch(&shaders.RasterizeDepth{
		Params: p.Params, TileOffsets: p.TileOffsets, TileOrder: p.TileOrder, SlotFromIsect: p.SlotFromIsect,
		SplatFromSlot: p.SplatFromSlot, Shapes: p.Shapes, Paints: p.Paints, Render: p.Render, LastIds: p.LastIds,
		States: p.States, Touched: p.Touched, TileFromBucket: p.TileFromBucket, DepthKeys: v.depthKeys,
		Depths: v.depthSums,
		Push:   shaders.RasterizeDepthPush(p.Push), Spec: shaders.RasterizeDepthSpec(p.Spec), Handed: p.Handed,
	}, v.indirect(layout.ArgsTiles))
}

// rasterizeBwdDepth is rasterizeBwd with the gradient by those sums.
func (v *view) rasterizeBwdDepth(p *shaders.RasterizeBwd) {
	v.r.Dispatch(&shaders.RasterizeBwdDepth{
		Params: p.Params, TileOffsets: p.TileOffsets, SlotFromIsect: p.SlotFromIsect,
		SplatFromSlot: p.SplatFromSlot, Shapes: p.Shapes, Paints: p.Paints, Render: p.Render, LastIds: p.LastIds,
		States: p.States, Touched: p.Touched, VRender: p.VRender, TileFromBucket: p.TileFromBucket, VSlots: p.VSlots,
		VBesideSlots: vk.Cast[[3]float32](v.vBesideSlots.View), DepthKeys: v.depthKeys, Depths: v.depthSums,
		Spec: shaders.RasterizeBwdDepthSpec(p.Spec),
	}, v.indirect(layout.ArgsBuckets))
}

func (v *view) depthLoss() {
	if !v.comparesDepths() {
		return
	}
	c, x := &v.s.compare, v.s.depths
	v.r.Dispatch(&shaders.DepthLoss{
		Params: v.f.params, Table: x.words, Target: v.s.target, Render: v.render, Depths: v.depthSums,
		VRender: v.vShown,
		Push: shaders.DepthLossPush{NHeads: uint32(x.heads), Weight: x.depth.weight, Log2Final: x.depth.log2Final(),
			DecaySteps: float32(x.depth.steps)},
		Spec: shaders.DepthLossSpec{TargetFloat: c.floats, Masked: c.masked, Packed: c.packed, Shrunk: c.shrunk},
	}, v.indirect(layout.ArgsTiles))
}
