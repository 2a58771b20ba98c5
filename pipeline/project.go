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
		pass := shaders.Project{
			Params: v.f.params, Counters: v.counters, Chunk: chunk,
			Projected: vk.Cast[float32](v.projected.View), Extents: vk.Cast[float32](v.extents.View), DepthKeys: v.depthKeys,
			Push: shaders.ProjectPush{FirstId: uint32(i * v.model.chunkSplats), ChunkSplats: uint32(v.model.chunkSplats)},
		}
		if !v.model.mixed {
			v.r.Dispatch(&pass, vk.Items(v.model.chunkSplats, 128))
			continue
		}
		v.r.Dispatch(&shaders.ProjectMixed{
			Params: pass.Params, Counters: pass.Counters, Chunk: vk.Cast[uint32](chunk.View),
			Projected: pass.Projected, Extents: pass.Extents, DepthKeys: pass.DepthKeys, Push: shaders.ProjectMixedPush(pass.Push),
		}, vk.Items(v.model.chunkSplats, 128))
	}
}
