package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// project culls and projects the splats, chunk by chunk.
func (v *view) project() {
	n := v.model.capacity()
	scratch(v.r, &v.projected, "projected", n)
	scratch(v.r, &v.extents, "extents", n)
	scratch(v.r, &v.depthKeys, "depth_keys", n)
	for i, chunk := range v.model.chunks {
		v.r.Dispatch(&shaders.Project{
			Params: v.f.params, Counters: v.counters, Chunk: chunk,
			Projected: v.projected, Extents: v.extents, DepthKeys: v.depthKeys,
			Push: shaders.ProjectPush{FirstId: uint32(i * v.model.chunkSplats), ChunkSplats: uint32(v.model.chunkSplats)},
		}, vk.Items(v.model.chunkSplats, 256))
	}
}
