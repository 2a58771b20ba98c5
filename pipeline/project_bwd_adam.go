package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// projectBwdAdam takes the gradients to the parameters and steps the optimiser, chunk by chunk.
func (v *view) projectBwdAdam() {
	abs := v.vAbsMean2D
	if !v.strategy.absgrad {
		abs = vk.Cast[[2]float32](v.vProjected.View) // not read
	}
	for _, c := range v.model.chunks {
		v.r.Dispatch(&shaders.ProjectBwdAdam{
			Params: v.f.params, Counters: v.counters, DepthKeys: v.depthKeys, VProjected: v.vProjected,
			Chunk: c.Slice, VAbsMean2d: abs, Projected: v.projected, Mixed: v.model.Mixed,
			Push: shaders.ProjectBwdAdamPush{
				FirstId: uint32(c.first), ChunkSplats: uint32(c.splats), NParams: uint32(v.model.NParams),
			},
			Spec: shaders.ProjectBwdAdamSpec{Absgrad: v.strategy.absgrad, Noise: v.strategy.noise},
		}, vk.Items(c.splats, 128))
	}
}
