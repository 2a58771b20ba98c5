package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// strategyExact is the strategy 3dgs that ends with a given number of splats: a refinement may remove splats for that.
type strategyExact struct{ absgrad bool }

func (s strategyExact) variants() variants { return strategy3DGS(s).variants() }

func (strategyExact) knowsFinalSize() bool { return true }

func (strategyExact) refine(v *view) { v.densify((*view).rankForTarget) }

// rankForTarget ranks splats for removal in place of growth where there are more than the target.
func (v *view) rankForTarget(keys, pruneKeys vk.Slice[uint32]) {
	v.r.Dispatch(&shaders.RefineRank{Params: v.f.params, Counters: v.s.counters, PruneKeys: pruneKeys, Keys: keys},
		v.indirect(layout.ArgsSplats))
}
