package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// projectBwdAdam takes the gradients to the parameters and steps the optimiser, chunk by chunk. See adamUnseen.
func (v *view) projectBwdAdam() {
	for _, c := range v.s.model.chunks {
		var pass vk.Pass = &shaders.ProjectBwdAdam{
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
		switch {
		case v.s.lens.bent:
			pass = vk.Derive(pass, func(p *shaders.ProjectBwdAdamLens) {
				p.Lens, p.Spec.Shutter = v.f.lens.lens, v.s.lens.shutter
			})
		case v.s.depths != nil:
			pass = vk.Derive(pass, func(p *shaders.ProjectBwdAdamDepth) {
				p.VBeside = vk.Cast[[3]float32](v.vBeside.View)
			})
		}
		v.r.Dispatch(pass, vk.Items(c.splats, adamGroup))
	}
}
