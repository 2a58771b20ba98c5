package pipeline

import (
	"vksplat/pipeline/recipe"
	"vksplat/shaders"
	"vksplat/vk"
)

// unseenParts is into how many parts the workgroups of unseen splats are dealt: one is stepped beside rasterize, one
// beside rasterize_bwd.
const unseenParts = 2

// unseenApart reports whether splats that the view does not see are stepped beside the passes that draw. What that
// fills, the time when the last workgroups of those passes are at work, is there in every step; but where splats are
// few for the pixels most are seen, and two more dispatches cost 8 us. On an H100, 0.08 splats a pixel (desk) lose
// 0.5 %, 0.56 (fox_pinhole) gain 1 % and 2.3 (bonsai_146) 4 to 6 %.
func (e *engine) unseenApart() bool {
	return e.links == nil && 3*e.model.capacity() >= e.viewSize.maxPixels
}

// adamUnseen steps the optimiser on a part of the workgroups whose splats the view does not see. It comes behind the
// last pass that may fail.
func (v *view) adamUnseen(part int) {
	if v.kind != recipe.Step || !v.unseenApart() {
		return
	}
	for _, c := range v.model.chunks {
		v.r.Dispatch(&shaders.AdamUnseen{
			Params: v.f.params, Counters: v.counters, DepthKeys: v.depthKeys, Chunk: c.Slice, Mixed: v.model.Mixed,
			Push: shaders.AdamUnseenPush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats),
				NParams: uint32(v.model.NParams), Part: uint32(part), NParts: unseenParts},
			Spec: shaders.AdamUnseenSpec{Noise: v.strategy.noise},
		}, vk.Items(c.splats, 128*unseenParts))
	}
}
