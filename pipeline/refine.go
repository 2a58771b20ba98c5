package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// refine duplicates, splits and prunes splats in place: classify, number what is new and what goes, check that it fits, move.
func (v *view) refine() {
	n := v.model.capacity()
	actions := vk.ScratchOf[uint32](v.r, "actions", n)
	fresh := vk.ScratchOf[uint32](v.r, "new_offset", n)
	holes := vk.ScratchOf[uint32](v.r, "hole_offset", n)
	list := vk.ScratchOf[uint32](v.r, "hole_list", n)
	size, params := uint32(v.model.chunkSplats), uint32(v.model.nParams)
	perChunk := vk.Items(v.model.chunkSplats, 256)
	for i, chunk := range v.model.chunks {
		v.r.Dispatch(&shaders.RefineClassify{
			Params: v.f.params, Counters: v.counters, Chunk: chunk, Actions: actions, NewOffset: fresh, HoleOffset: holes,
			Push: shaders.RefineClassifyPush{FirstId: uint32(i) * size, ChunkSplats: size, NParams: params},
		}, perChunk)
	}
	v.scan("new scan", fresh, layout.NActive, layout.ArgsScanSplats, layout.NNew, false)
	v.scan("hole scan", holes, layout.NActive, layout.ArgsScanSplats, layout.NHoles, false)
	v.r.Dispatch(&shaders.RefinePlan{Params: v.f.params, Counters: v.counters, HoleOffset: holes}, vk.Groups(1))
	v.r.Dispatch(&shaders.RefineHoles{Counters: v.counters, Actions: actions, HoleOffset: holes, HoleList: list}, v.indirect(layout.ArgsSplats))
	for i, source := range v.model.chunks {
		for j, dest := range v.model.chunks {
			v.r.Dispatch(&shaders.RefinePlace{
				Params: v.f.params, Counters: v.counters, Actions: actions, NewOffset: fresh, HoleOffset: holes, HoleList: list,
				Source: source, Dest: dest,
				Push: shaders.RefinePlacePush{FirstId: uint32(i) * size, ChunkSplats: size, NParams: params, DestFirstId: uint32(j) * size},
			}, perChunk)
		}
	}
	for i, chunk := range v.model.chunks {
		v.r.Dispatch(&shaders.RefineUpdate{
			Params: v.f.params, Counters: v.counters, Actions: actions, NewOffset: fresh, Chunk: chunk,
			Push: shaders.RefineUpdatePush{FirstId: uint32(i) * size, ChunkSplats: size, NParams: params},
		}, perChunk)
	}
	v.r.Dispatch(&shaders.RefineCommit{Counters: v.counters}, vk.Groups(1))
}

// resetOpacity lowers all opacities.
func (v *view) resetOpacity() {
	for i, chunk := range v.model.chunks {
		v.r.Dispatch(&shaders.ResetOpacity{
			Params: v.f.params, Counters: v.counters, Chunk: chunk,
			Push: shaders.ResetOpacityPush{
				FirstId: uint32(i * v.model.chunkSplats), ChunkSplats: uint32(v.model.chunkSplats), NParams: uint32(v.model.nParams),
			},
		}, vk.Items(v.model.chunkSplats, 256))
	}
}
