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
	v.r.Dispatch(vk.Derive(p, func(p *shaders.RasterizeDepth) {
		p.DepthKeys, p.Depths = v.depthKeys, v.depthSums
	}), v.indirect(layout.ArgsTiles))
}

// depthLoss compares the picture with the depths that are known of the photo, and with the normals.
func (v *view) depthLoss() {
	if !v.comparesDepths() {
		return
	}
	c, x := &v.s.compare, v.s.depths
	pass := &shaders.DepthLoss{
		Params: v.f.params, Table: x.words, Target: v.s.target, Render: v.render, Depths: v.depthSums,
		VRender: v.vShown,
		Push: shaders.DepthLossPush{NHeads: uint32(x.heads), Weight: x.depth.weight, Log2Final: x.depth.log2Final(),
			DecaySteps: float32(x.depth.steps)},
		Spec: shaders.DepthLossSpec{TargetFloat: c.floats, Masked: c.masked, Packed: c.packed, Shrunk: c.shrunk},
	}
	v.r.Dispatch(pass, v.indirect(layout.ArgsTiles))
	if x.normals {
		v.r.Dispatch(vk.Derive(pass, func(p *shaders.NormalLoss) {
			p.Push.Weight, p.Push.Log2Final = x.normal.weight, x.normal.log2Final()
			p.Push.DecaySteps = float32(x.normal.steps)
		}), v.indirect(layout.ArgsTiles))
	}
}
