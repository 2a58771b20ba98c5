package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// strategy3DGS is the strategy of 3DGS (Kerbl et al. 2023): splats whose screen gradients are large grow, and
// transparent or large ones go.
type strategy3DGS struct{ absgrad bool }

func (s strategy3DGS) variants() variants {
	return variants{absgrad: s.absgrad, unseenParts: 2, reach: 1}
}

func (strategy3DGS) knowsFinalSize() bool { return false }

func (strategy3DGS) refine(v *view) { v.densify(func(*view, vk.Slice[uint32], vk.Slice[uint32]) {}) }

// densify duplicates, splits and prunes splats in place: classify, rank, check that it fits, number new splats and
// holes, move. rank may replace the keys by which splats are chosen for growth.
func (v *view) densify(rank func(v *view, keys, pruneKeys vk.Slice[uint32])) {
	n := v.s.model.capacity()
	actions := vk.ScratchOf[uint32](v.r, "actions", n)
	fresh := vk.ScratchOf[uint32](v.r, "new_offset", n)
	holes := vk.ScratchOf[uint32](v.r, "hole_offset", n)
	list := vk.ScratchOf[uint32](v.r, "hole_list", n)
	params, state := uint32(v.s.model.Stored), uint32(v.s.model.Stats)
	v.chooseGrowth(actions, fresh, holes, rank)
	v.scan("new scan", fresh, layout.NActive, layout.ArgsScanSplats, layout.NGrown, false)
	v.scan("hole scan", holes, layout.NActive, layout.ArgsScanSplats, layout.NHoles, false)
	v.r.Dispatch(&shaders.RefineHoles{Counters: v.s.counters, Actions: actions, HoleOffset: holes, HoleList: list},
		v.indirect(layout.ArgsSplats))
	for _, source := range v.s.model.chunks {
		for _, dest := range v.s.model.chunks {
			v.r.Dispatch(&shaders.RefinePlace{
				Params: v.f.params, Counters: v.s.counters, Actions: actions, NewOffset: fresh, HoleOffset: holes,
				HoleList: list,
				Source:   vk.Cast[uint32](source.View), Dest: vk.Cast[uint32](dest.View),
				Push: shaders.RefinePlacePush{
					FirstId: uint32(source.first), ChunkSplats: uint32(source.splats), NParams: params, NState: state,
					DestFirstId: uint32(dest.first), DestSplats: uint32(dest.splats),
				},
			}, vk.Items(source.splats, 256))
		}
	}
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.RefineUpdate{
			Params: v.f.params, Counters: v.s.counters, Actions: actions, Chunk: c.Slice,
			Push: shaders.RefineUpdatePush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats), NParams: params,
				NState: state},
		}, vk.Items(c.splats, 256))
	}
	v.r.Dispatch(&shaders.RefineCommit{Counters: v.s.counters}, vk.Groups(1))
}

// chooseGrowth decides for every splat: actions, and flags of new splats and holes. Where there is not room for all
// that may grow, those of the highest scores do.
func (v *view) chooseGrowth(actions, fresh, holes vk.Slice[uint32], rank func(v *view, keys,
	pruneKeys vk.Slice[uint32])) {
	n := v.s.model.capacity()
	keys := vk.ScratchOf[uint32](v.r, "grow_keys", n)
	pruneKeys := vk.ScratchOf[uint32](v.r, "prune_keys", n)
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.RefineClassify{
			Params: v.f.params, Counters: v.s.counters, Chunk: c.Slice, Actions: actions, NewOffset: fresh,
			HoleOffset: holes, GrowKeys: keys, PruneKeys: pruneKeys,
			Push: shaders.RefineClassifyPush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats),
				NState: uint32(v.s.model.Stats)},
			Spec: shaders.RefineClassifySpec{Mixed: v.s.model.Mixed},
		}, vk.Items(c.splats, 256))
	}
	rank(v, keys, pruneKeys)
	_, ranked := v.radixSort(sortJob{
		name: "growth sort", keys: keys, drop: true, keyBits: 31, slot: layout.NVisible, args: layout.ArgsSortVisible,
		tallies: v.tallies.depth,
		spare: [2]vk.Slice[uint32]{vk.ScratchOf[uint32](v.r, "growth sort keys", n),
			vk.ScratchOf[uint32](v.r, "growth sort values", n)},
	})
	v.r.Dispatch(&shaders.RefinePlan{Params: v.f.params, Counters: v.s.counters}, vk.Groups(1))
	v.r.Dispatch(&shaders.RefineSelect{
		Params: v.f.params, Counters: v.s.counters, SplatFromRank: ranked, Actions: actions, NewOffset: fresh,
		HoleOffset: holes,
	}, v.indirect(layout.ArgsVisible))
}

func (v *view) resetOpacity() {
	for _, c := range v.s.model.chunks {
		v.r.Dispatch(&shaders.ResetOpacity{
			Params: v.f.params, Counters: v.s.counters, Chunk: c.Slice,
			Push: shaders.ResetOpacityPush{
				FirstId: uint32(c.first), ChunkSplats: uint32(c.splats),
				FirstMoments:  uint32(v.s.model.First + layout.RowLogitOpacities),
				SecondMoments: uint32(v.s.model.Second + layout.RowLogitOpacities),
			},
		}, vk.Items(c.splats, 256))
	}
}
