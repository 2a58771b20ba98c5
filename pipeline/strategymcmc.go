package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// strategyMCMC keeps a given number of splats and relocates the dead ones (Kheradmand et al. 2024).
type strategyMCMC struct {
	absgrad bool
	noise   bool // see variants
}

// variants has unseen splats stepped in one part: noise makes their optimiser compute. Of a given number of splats a
// few large ones may be all of the backdrop: carving them at their own distance would leave a hole each time.
func (s strategyMCMC) variants() variants {
	return variants{absgrad: s.absgrad, noise: s.noise, unseenParts: 1, reach: 2}
}

func (strategyMCMC) knowsFinalSize() bool { return true }

// copies are the buffers that the two rounds of a refinement share.
type copies struct {
	actions, holes, list vk.Slice[uint32] // [N]
	weights, drawn       vk.Slice[uint32] // [N]
	sources              vk.Slice[uint32] // [N]
}

// refine puts every dead splat in the place of a living one and adds new ones, drawing living splats in proportion to
// their opacity (section 3.3 of the paper). Whether the result fits is known before anything changes.
func (strategyMCMC) refine(v *view) {
	n := v.s.model.capacity()
	c := &copies{
		actions: vk.ScratchOf[uint32](v.r, "actions", n), holes: vk.ScratchOf[uint32](v.r, "hole_offset", n),
		list:    vk.ScratchOf[uint32](v.r, "hole_list", n),
		weights: vk.ScratchOf[uint32](v.r, "weights", n), drawn: vk.ScratchOf[uint32](v.r, "multiplicity", n),
		sources: vk.ScratchOf[uint32](v.r, "sources", n),
	}
	v.r.Dispatch(&shaders.McmcPlan{Params: v.f.params, Counters: v.s.counters, DispatchArgs: v.s.args}, vk.Groups(1))
	v.copySplats(c, layout.RoundRelocate)
	v.copySplats(c, layout.RoundGrow)
	v.r.Dispatch(&shaders.RefineCommit{Counters: v.s.counters}, vk.Groups(1))
}

// copySplats is one round: weigh, draw, copy, and update the drawn splats.
func (v *view) copySplats(c *copies, round uint32) {
	params, state := uint32(v.s.model.Stored), uint32(v.s.model.Stats)
	for _, part := range v.s.model.chunks {
		v.r.Dispatch(&shaders.McmcWeigh{
			Params: v.f.params, Counters: v.s.counters, Chunk: part.Slice, Actions: c.actions, HoleOffset: c.holes,
			Weights: c.weights, Multiplicity: c.drawn,
			Push: shaders.McmcWeighPush{FirstId: uint32(part.first), ChunkSplats: uint32(part.splats), Round: round},
			Spec: shaders.McmcWeighSpec{Mixed: v.s.model.Mixed},
		}, vk.Items(part.splats, 256))
	}
	v.scan("weight scan", c.weights, layout.NActive, layout.ArgsScanSplats, layout.NWeight, false)
	if round == layout.RoundRelocate {
		v.scan("hole scan", c.holes, layout.NActive, layout.ArgsScanSplats, layout.NHoles, false)
		v.r.Dispatch(&shaders.RefineHoles{Counters: v.s.counters, Actions: c.actions, HoleOffset: c.holes,
			HoleList: c.list}, v.indirect(layout.ArgsSplats))
	}
	v.r.Dispatch(&shaders.McmcDraw{
		Params: v.f.params, Counters: v.s.counters, Weights: c.weights, HoleList: c.list, Sources: c.sources,
		Multiplicity: c.drawn,
		DispatchArgs: v.s.args, Push: shaders.McmcDrawPush{Round: round},
	}, v.indirect(layout.ArgsDraws))
	for _, source := range v.s.model.chunks {
		for _, dest := range v.s.model.chunks {
			v.r.Dispatch(&shaders.McmcPlace{
				Params: v.f.params, Counters: v.s.counters, Sources: c.sources, Multiplicity: c.drawn, HoleList: c.list,
				Source: vk.Cast[uint32](source.View), Dest: vk.Cast[uint32](dest.View),
				Push: shaders.McmcPlacePush{
					FirstId: uint32(source.first), ChunkSplats: uint32(source.splats), NParams: params, NState: state,
					DestFirstId: uint32(dest.first), DestSplats: uint32(dest.splats), Round: round,
				},
			}, v.indirect(layout.ArgsCopies))
		}
	}
	for _, part := range v.s.model.chunks {
		v.r.Dispatch(&shaders.McmcUpdate{
			Params: v.f.params, Counters: v.s.counters, Multiplicity: c.drawn, Chunk: part.Slice,
			Push: shaders.McmcUpdatePush{FirstId: uint32(part.first), ChunkSplats: uint32(part.splats), NParams: params,
				NState: state, Round: round},
		}, vk.Items(part.splats, 256))
	}
}
