package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// projectBwdAdam takes the gradients to the parameters and steps the optimiser, chunk by chunk. See adamUnseen.
func (v *view) projectBwdAdam() {
	for _, c := range v.s.model.chunks {
		plain := &shaders.ProjectBwdAdam{
			Params: v.f.params, Counters: v.s.counters, DepthKeys: v.depthKeys, VProjected: v.vProjected,
			Chunk: c.Slice, VAbsMean2d: vk.Cast[[2]float32](v.vBeside.View), Paints: v.paints,
			Mixed: v.s.model.Mixed,
			Push: shaders.ProjectBwdAdamPush{
				FirstId: uint32(c.first), ChunkSplats: uint32(c.splats), NParams: uint32(v.s.model.NParams),
			},
			Spec: shaders.ProjectBwdAdamSpec{Absgrad: v.s.strategy.variants().absgrad,
				Noise:       v.s.strategy.variants().noise,
				UnseenApart: v.stepsApart()},
		}
		if v.s.lens.bent {
			v.projectBwdAdamLens(plain, vk.Items(c.splats, adamGroup))
			continue
		}
		if v.s.depths == nil {
			v.r.Dispatch(plain, vk.Items(c.splats, adamGroup))
			continue
		}
		v.r.Dispatch(&shaders.ProjectBwdAdamDepth{
			Params: plain.Params, Counters: plain.Counters, DepthKeys: plain.DepthKeys, VProjected: plain.VProjected,
			Chunk: plain.Chunk, VBeside: vk.Cast[[3]float32](v.vBeside.View), Paints: plain.Paints,
			Mixed: plain.Mixed,
			Push:  shaders.ProjectBwdAdamDepthPush(plain.Push), Spec: shaders.ProjectBwdAdamDepthSpec(plain.Spec),
		}, vk.Items(c.splats, adamGroup))
	}
}
