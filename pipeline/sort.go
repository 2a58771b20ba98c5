package pipeline

import (
	"math/bits"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// sortShape is how the radix sort runs on a device. The result does not depend on it.
type sortShape struct {
	bits      int    // of a digit, at most
	workgroup uint32 // invocations of sort_scatter
	scan      uint32 // invocations of sort_scan
	subgroup  uint32
}

// chooseSort takes wide digits where a workgroup's subgroups leave room for their tables in 16 KiB of shared memory.
func chooseSort(l vk.Limits) sortShape {
	s := sortShape{bits: 8, workgroup: 256, scan: 256, subgroup: l.SubgroupSize}
	if l.MinSubgroupSize <= 16 && s.subgroup > 16 && l.MaxComputeWorkgroupSubgroups >= 16 {
		s.subgroup = 16 // Intel: at 32, rasterize_bwd spills registers
	}
	if s.subgroup < 32 {
		s.workgroup = 128
	}
	if s.subgroup < 16 {
		s.bits, s.scan = 6, 32 // software Vulkan: an idle invocation costs as much as a busy one
	}
	return s
}

// sortJob is a stable radix sort of keys with values.
type sortJob struct {
	name         string
	keys, values vk.Slice[uint32]
	spare        [2]vk.Slice[uint32] // keys and values to move to
	slot         uint32              // of counters: number of keys
	args         int                 // dispatch_args slot: workgroups for that number
	keyBits      int                 // bits that keys differ in
	depth        bool                // keys are depth_keys: drop the culled ones, values are the indices
}

// radixSort sorts by keyBits bits, the least significant digit first, and returns where the result is.
func (v *view) radixSort(j sortJob) (keys, values vk.Slice[uint32]) {
	n := j.keys.N()
	maxBlocks := max(1, (n+layout.SortBlock-1)/layout.SortBlock)
	passes := (j.keyBits + v.sort.bits - 1) / v.sort.bits
	histogram := vk.ScratchOf[uint32](v.r, j.name+" histogram", maxBlocks<<v.sort.bits)
	totals := vk.ScratchOf[uint32](v.r, j.name+" totals", 1<<v.sort.bits)
	from := [2]vk.Slice[uint32]{j.keys, j.values}
	to := j.spare
	for pass := range passes {
		shift := pass * v.sort.bits
		width := min(v.sort.bits, j.keyBits-shift)
		first := j.depth && pass == 0
		slot, args := j.slot, j.args
		if first {
			slot, args = layout.NActive, layout.ArgsSortSplats
			from[1] = from[0] // not read: the values are the indices
		}
		v.r.Dispatch(&shaders.SortHistogram{
			Counters: v.counters, Keys: from[0], Histogram: histogram,
			Push: shaders.SortHistogramPush{CountSlot: slot, Shift: uint32(shift), Bits: uint32(width), MaxBlocks: uint32(maxBlocks)},
			Spec: shaders.SortHistogramSpec{SkipCulled: first},
		}, v.indirect(args))
		v.r.Dispatch(&shaders.SortScan{
			Counters: v.counters, Histogram: histogram, Totals: totals,
			Push: shaders.SortScanPush{CountSlot: slot, MaxBlocks: uint32(maxBlocks)},
			Spec: shaders.SortScanSpec{WorkgroupSize: v.sort.scan},
		}, vk.Groups(1<<width))
		v.r.Dispatch(&shaders.SortScatter{
			Counters: v.counters, Histogram: histogram, Totals: totals, DispatchArgs: v.args,
			KeysIn: from[0], ValuesIn: from[1], KeysOut: to[0], ValuesOut: to[1],
			Push: shaders.SortScatterPush{CountSlot: slot, Shift: uint32(shift), Bits: uint32(width), MaxBlocks: uint32(maxBlocks)},
			Spec: shaders.SortScatterSpec{
				WorkgroupSize: v.sort.workgroup, FirstDepthPass: first, Radix: 1 << v.sort.bits,
				NSubgroups: v.sort.workgroup / v.sort.subgroup, SubgroupSize: v.sort.subgroup,
			},
		}, v.indirect(args))
		from, to = to, from
		if first { // the depth keys themselves are needed later: go on between two spare pairs
			to = [2]vk.Slice[uint32]{
				vk.ScratchOf[uint32](v.r, j.name+" keys", n), vk.ScratchOf[uint32](v.r, j.name+" values", n),
			}
		}
	}
	return from[0], from[1]
}

// depthBits is how many bits depths are sorted by: the sign bit of a depth is never set.
const depthBits = 31

// tileBits is how many bits the tiles of a view differ in.
func (s viewSize) tileBits() int { return max(1, bits.Len(uint(s.maxTiles-1))) }

// sortDepth puts the visible splats in order of depth.
func (v *view) sortDepth() {
	n := v.model.capacity()
	_, v.splatFromRank = v.radixSort(sortJob{
		name: "depth sort", keys: v.depthKeys, depth: true, keyBits: depthBits, slot: layout.NVisible, args: layout.ArgsSortVisible,
		spare: [2]vk.Slice[uint32]{vk.ScratchOf[uint32](v.r, "depth sort keys", n), vk.ScratchOf[uint32](v.r, "depth sort values", n)},
	})
}

// sortTiles sorts the isects by tile and returns their tile ids; the sort is stable, so each tile's isects stay in order of depth.
func (v *view) sortTiles(ids, slots vk.Slice[uint32]) vk.Slice[uint32] {
	n := v.isectCapacity
	ids, v.slotFromIsect = v.radixSort(sortJob{
		name: "tile sort", keys: ids, values: slots, keyBits: v.tileBits(), slot: layout.NIsects, args: layout.ArgsSortIsects,
		spare: [2]vk.Slice[uint32]{vk.ScratchOf[uint32](v.r, "tile sort keys", n), vk.ScratchOf[uint32](v.r, "tile sort values", n)},
	})
	return ids
}
