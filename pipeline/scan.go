package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// scan replaces values by their exclusive prefix sums. slot of counters holds their number, args of dispatch_args its
// workgroups; the total goes to slot total. With isects the total is checked against the capacity.
func (v *view) scan(name string, values vk.Slice[uint32], slot uint32, args int, total uint32, isects bool) {
	sums := vk.ScratchOf[uint32](v.r, name+" block sums", max(1, (values.N()+layout.ScanBlock-1)/layout.ScanBlock))
	v.r.Dispatch(&shaders.ScanReduce{
		Counters: v.s.counters, Values: values, BlockSums: sums, Push: shaders.ScanReducePush{CountSlot: slot},
	}, v.indirect(args))
	v.r.Dispatch(&shaders.ScanSpine{
		Params: v.f.params, Counters: v.s.counters, BlockSums: sums, DispatchArgs: v.s.args,
		Push: shaders.ScanSpinePush{CountSlot: slot, TotalSlot: total, Capacity: uint32(v.s.isectCapacity)},
		Spec: shaders.ScanSpineSpec{Isects: isects},
	}, vk.Groups(1))
	v.r.Dispatch(&shaders.ScanApply{
		Counters: v.s.counters, Values: values, BlockSums: sums, Push: shaders.ScanApplyPush{CountSlot: slot},
	}, v.indirect(args))
}

// findIsects finds each visible splat's first isect in a band, and whether the isects fit.
func (v *view) findIsects(band int) {
	scratch(v.r, &v.firstIsect, "first_isect", v.s.projections())
	if v.s.sort.lookback {
		v.scanTiles(band)
		return
	}
	v.countTiles(band)
	v.scan("isect scan", v.firstIsect, layout.NVisible, layout.ArgsScanVisible, layout.NIsects, true)
}
