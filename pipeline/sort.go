package pipeline

import (
	"math/bits"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// sortShape is how the radix sort runs on a device. The result does not depend on it.
type sortShape struct {
	lookback  bool   // by sort_count and sort_sweep, where workgroups may wait for each other
	bits      int    // of a digit, at most
	workgroup uint32 // invocations of sort_scatter
	scan      uint32 // invocations of sort_scan
	subgroup  uint32
}

// chooseSort takes wide digits where a workgroup's subgroups leave room for their tables in 16 KiB of shared memory.
func chooseSort(d vk.DeviceInfo) sortShape {
	l := d.Limits
	s := sortShape{lookback: looksBack(&d), bits: 8, workgroup: 256, scan: 256, subgroup: l.SubgroupSize}
	if l.MinSubgroupSize <= 16 && s.subgroup > 16 && l.MaxComputeWorkgroupSubgroups >= 16 {
		s.subgroup = 16 // Intel: at 32 a lane has half the registers
	}
	if s.lookback {
		s.bits = sweepBits(s.subgroup)
		return s
	}
	if s.subgroup < 32 {
		s.workgroup = 128
	}
	if s.subgroup < 16 {
		s.bits, s.scan = 6, 32 // software Vulkan: an idle invocation costs as much as a busy one
	}
	return s
}

// sweepBits returns the widest digits for which sort_sweep has a table for each subgroup: SORT_BLOCK words in all.
func sweepBits(subgroup uint32) int {
	return min(8, bits.Len32(layout.SortBlock*subgroup/layout.Group)-1)
}

// sortJob is a stable radix sort of keys with values.
type sortJob struct {
	name         string
	keys, values vk.Slice[uint32]
	spare        [2]vk.Slice[uint32] // keys and values to move to
	slot         uint32              // of counters: number of keys
	args         int                 // dispatch_args slot: workgroups for that number
	keyBits      int                 // bits that keys differ in
	drop         bool                // the culled keys; values are the indices
	depth        bool                // keys are depth_keys; see layout.LeastDepth
	tallies      vk.Slice[uint32]    // with kernels that look back
}

// sortPass is one pass of a sort: by one digit, from one pair of keys and values to another.
type sortPass struct {
	number   int
	first    bool   // of a sort that drops keys
	depth    bool   // keys are depth_keys still
	slot     uint32 // as of the job, for this pass
	args     int
	from, to [2]vk.Slice[uint32]
}

// source returns what is counted and dispatched by: in the first pass of a sort that drops keys all of them, not only
// those that are kept.
func (j *sortJob) source(first bool) (slot uint32, args int) {
	if first {
		return layout.NActive, layout.ArgsSortSplats
	}
	return j.slot, j.args
}

// radixSort sorts by keyBits bits, the least significant digit first, and returns where the result is.
func (v *view) radixSort(j sortJob) (keys, values vk.Slice[uint32]) {
	n := j.keys.N()
	passes := (j.keyBits + v.s.sort.bits - 1) / v.s.sort.bits
	move := v.scatterPasses(&j)
	if v.s.sort.lookback {
		move = v.sweepPasses(&j, passes)
	}
	from, to := [2]vk.Slice[uint32]{j.keys, j.values}, j.spare
	for number := range passes {
		first := j.drop && number == 0
		if first {
			from[1] = from[0] // not read: the values are the indices
		}
		slot, args := j.source(first)
		move(&sortPass{number: number, first: first, depth: j.depth && first, slot: slot, args: args, from: from,
			to: to})
		from, to = to, from
		if first { // the keys themselves are needed later: continue between two spare pairs
			to = [2]vk.Slice[uint32]{
				vk.ScratchOf[uint32](v.r, j.name+" keys", n), vk.ScratchOf[uint32](v.r, j.name+" values", n),
			}
		}
	}
	return from[0], from[1]
}

// blocks returns the blocks of a workgroup each that the job's keys lie in.
func (j *sortJob) blocks() int { return max(1, (j.keys.N()+layout.SortBlock-1)/layout.SortBlock) }

// scatterPasses returns the recording of a pass in three kernels: count the digits of each block, sum the counts, move
// the keys.
func (v *view) scatterPasses(j *sortJob) func(p *sortPass) {
	var histogram, totals vk.Slice[uint32]
	blocks := uint32(j.blocks())
	return func(p *sortPass) {
		scratch(v.r, &histogram, j.name+" histogram", int(blocks)<<v.s.sort.bits)
		scratch(v.r, &totals, j.name+" totals", 1<<v.s.sort.bits)
		shift := p.number * v.s.sort.bits
		width := min(v.s.sort.bits, j.keyBits-shift)
		v.r.Dispatch(&shaders.SortHistogram{
			Counters: v.s.counters, Keys: p.from[0], Histogram: histogram,
			Push: shaders.SortHistogramPush{CountSlot: p.slot, Shift: uint32(shift), Bits: uint32(width),
				MaxBlocks: blocks},
			Spec: shaders.SortHistogramSpec{SkipCulled: p.first, Depths: p.depth},
		}, v.indirect(p.args))
		v.r.Dispatch(&shaders.SortScan{
			Counters: v.s.counters, Histogram: histogram, Totals: totals,
			Push: shaders.SortScanPush{CountSlot: p.slot, MaxBlocks: blocks},
			Spec: shaders.SortScanSpec{WorkgroupSize: v.s.sort.scan},
		}, vk.Groups(1<<width))
		v.r.Dispatch(&shaders.SortScatter{
			Counters: v.s.counters, Histogram: histogram, Totals: totals, DispatchArgs: v.s.args,
			KeysIn: p.from[0], ValuesIn: p.from[1], KeysOut: p.to[0], ValuesOut: p.to[1],
			Push: shaders.SortScatterPush{CountSlot: p.slot, Shift: uint32(shift), Bits: uint32(width),
				MaxBlocks: blocks},
			Spec: shaders.SortScatterSpec{
				WorkgroupSize: v.s.sort.workgroup, FirstDepthPass: p.first, Radix: 1 << v.s.sort.bits,
				NSubgroups: v.s.sort.workgroup / v.s.sort.subgroup, SubgroupSize: v.s.sort.subgroup,
				Depths: p.depth,
			},
		}, v.indirect(p.args))
	}
}

// sweepPasses counts the digits of all passes and returns the recording of a pass in one kernel, which looks back.
func (v *view) sweepPasses(j *sortJob, passes int) func(p *sortPass) {
	width := uint32((j.keyBits + passes - 1) / passes)
	blocks := j.blocks()
	published := vk.ScratchOf[uint32](v.r, j.name+" published", passes*blocks<<width)
	slot, args := j.source(j.drop)
	v.r.Dispatch(&shaders.SortCount{
		Counters: v.s.counters, Keys: j.keys, Tallies: j.tallies, Published: published,
		Push: shaders.SortCountPush{CountSlot: slot, NPasses: uint32(passes), MaxBlocks: uint32(blocks)},
		Spec: shaders.SortCountSpec{SkipCulled: j.drop, Bits: width, Depths: j.depth},
	}, v.indirect(args))
	return func(p *sortPass) {
		v.r.Dispatch(&shaders.SortSweep{
			Counters: v.s.counters, Tallies: j.tallies, Published: published, DispatchArgs: v.s.args,
			KeysIn: p.from[0], ValuesIn: p.from[1], KeysOut: p.to[0], ValuesOut: p.to[1],
			Push: shaders.SortSweepPush{CountSlot: p.slot, Pass: uint32(p.number), NPasses: uint32(passes),
				MaxBlocks: uint32(blocks)},
			Spec: shaders.SortSweepSpec{FirstDepthPass: p.first, Bits: width, SubgroupSize: v.s.sort.subgroup,
				Depths: p.depth},
		}, v.indirect(p.args))
	}
}

// tileBits returns how many bits the tiles of a view differ in.
func (s viewSize) tileBits() int { return max(1, bits.Len(uint(s.maxTiles-1))) }

// sortDepth puts the visible splats in order of depth.
func (v *view) sortDepth() {
	n := v.s.projections()
	_, v.splatFromRank = v.radixSort(sortJob{
		name: "depth sort", keys: v.depthKeys, drop: true, depth: true, keyBits: layout.DepthBits,
		slot: layout.NVisible, args: layout.ArgsSortVisible, tallies: v.tallies.depth,
		spare: [2]vk.Slice[uint32]{vk.ScratchOf[uint32](v.r, "depth sort keys", n),
			vk.ScratchOf[uint32](v.r, "depth sort values", n)},
	})
}

// sortTiles sorts the isects by tile and returns their tile ids; the sort is stable, so each tile's isects stay in
// order of depth.
func (v *view) sortTiles(ids, slots vk.Slice[uint32]) vk.Slice[uint32] {
	n := v.s.isectCapacity
	ids, v.slotFromIsect = v.radixSort(sortJob{
		name: "tile sort", keys: ids, values: slots, keyBits: v.size.tileBits(), slot: layout.NIsects,
		args: layout.ArgsSortIsects, tallies: v.tallies.tiles,
		spare: [2]vk.Slice[uint32]{vk.ScratchOf[uint32](v.r, "tile sort keys", n),
			vk.ScratchOf[uint32](v.r, "tile sort values", n)},
	})
	return ids
}
