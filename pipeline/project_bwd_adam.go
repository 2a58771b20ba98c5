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
		pass := shaders.ProjectBwdAdam{
			Params: v.f.params, Counters: v.counters, DepthKeys: v.depthKeys, VProjected: v.vProjected, Chunk: c.Slice, VAbsMean2d: abs, Projected: v.projected,
			Push: shaders.ProjectBwdAdamPush{
				FirstId: uint32(c.first), ChunkSplats: uint32(c.splats), NParams: uint32(v.model.nParams),
			},
			Spec: shaders.ProjectBwdAdamSpec{Absgrad: v.strategy.absgrad, Noise: v.strategy.noise},
		}
		if !v.model.mixed {
			v.r.Dispatch(&pass, vk.Items(c.splats, 128))
			continue
		}
		v.r.Dispatch(&shaders.ProjectBwdAdamMixed{
			Params: pass.Params, Counters: pass.Counters, DepthKeys: pass.DepthKeys, VProjected: pass.VProjected, Chunk: vk.Cast[uint32](c.View),
			VAbsMean2d: pass.VAbsMean2d, Projected: pass.Projected, Push: shaders.ProjectBwdAdamMixedPush(pass.Push), Spec: shaders.ProjectBwdAdamMixedSpec(pass.Spec),
		}, vk.Items(c.splats, 128))
	}
}
