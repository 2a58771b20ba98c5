package pipeline

import (
	"vksplat/pipeline/recipe"
	"vksplat/shaders"
	"vksplat/vk"
)

// adamGroup is how many splats a workgroup of project_bwd_adam and adam_unseen steps.
const adamGroup = 128

// pixelsASplat is how many pixels there are for a splat at most if unseen splats are stepped apart. On an H100 that
// loses 0.5 % where there are 12 (desk: most splats are seen, and two more dispatches cost 8 us), gains 1 % where there
// are 1.8 (fox_pinhole, MCMC) and 4 to 6 % where there are 0.4 (bonsai_146). The bytes are the same.
const pixelsASplat = 3

// unseenApart reports whether splats that the view does not see are stepped beside the passes that draw, while the last
// workgroups of those passes leave room.
func (s *setup) unseenApart() bool {
	return s.links == nil && !s.hooks.unseenTogether && pixelsASplat*s.model.capacity() >= s.views.maxPixels
}

// stepsApart reports whether the unit does so.
func (v *view) stepsApart() bool { return v.kind == recipe.Step && v.s.unseenApart() }

// adamUnseen steps the optimiser on a part of the workgroups whose splats the view does not see: the first part beside
// rasterize, the second, if there is one, beside rasterize_bwd. On an H100 a step of bonsai_146 takes 2 % longer in one
// part, and with MCMC 0.8 % less. It comes after the last band's isects, because a unit that fails must change nothing.
// With several bands isects are made again later, which fails only where it failed before.
func (v *view) adamUnseen(part int) {
	parts := v.s.strategy.variants().unseenParts
	if !v.stepsApart() || part >= parts {
		return
	}
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.AdamUnseen{
			Params: v.f.params, Counters: v.s.counters, DepthKeys: v.depthKeys, Chunk: c.Slice, Mixed: v.s.model.Mixed,
			Push: shaders.AdamUnseenPush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats),
				NParams: uint32(v.s.model.NParams), Part: uint32(part), NParts: uint32(parts)},
			Spec: shaders.AdamUnseenSpec{Noise: v.s.strategy.variants().noise},
		}, vk.Items(c.splats, adamGroup*parts))
	}
}
