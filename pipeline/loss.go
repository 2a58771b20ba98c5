package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// loss compares the picture with its photo: the parts of the loss, and its gradient by every pixel.
func (v *view) loss() {
	maps := vk.ScratchOf[[3]float32](v.r, "ssim_maps", 3*v.maxPixels)
	v.partials = vk.ScratchOf[[3]float32](v.r, "partials", v.maxTiles)
	v.vRender = vk.ScratchOf[[4]float32](v.r, "v_render", v.maxPixels)
	v.r.Dispatch(&shaders.Loss{
		Params: v.f.params, Render: v.render, Target: v.target, SsimMaps: maps, Partials: v.partials,
		Spec: shaders.LossSpec{TargetFloat: v.floats},
	}, v.indirect(layout.ArgsTiles))
	v.r.Dispatch(&shaders.LossGrad{
		Params: v.f.params, Render: v.render, Target: v.target, SsimMaps: maps, VRender: v.vRender,
		Spec: shaders.LossGradSpec{TargetFloat: v.floats},
	}, v.indirect(layout.ArgsTiles))
}
