package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// projectBwdAdam takes the gradients to the parameters and steps the optimiser, chunk by chunk.
func (v *view) projectBwdAdam() {
	for i, chunk := range v.model.chunks {
		v.r.Dispatch(&shaders.ProjectBwdAdam{
			Params: v.f.params, Counters: v.counters, DepthKeys: v.depthKeys, VProjected: v.vProjected, Chunk: chunk,
			Push: shaders.ProjectBwdAdamPush{
				FirstId: uint32(i * v.model.chunkSplats), ChunkSplats: uint32(v.model.chunkSplats), NParams: uint32(v.model.nParams),
			},
		}, vk.Items(v.model.chunkSplats, 256))
	}
}
