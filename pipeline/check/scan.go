package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// scanSizes are sizes around a workgroup, a block, powers of two, and several blocks.
var scanSizes = []int{0, 1, 255, 256, 257, 1023, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 3*layout.ScanBlock + 5}

func blocksOf(n, block int) int { return (n + block - 1) / block }

func (t *trial) uints(n int, below uint32) []uint32 {
	x := make([]uint32, n)
	for i := range x {
		x[i] = t.Uint32N(below)
	}
	return x
}

func scanCases() []Case {
	return []Case{
		newCase("scan_reduce", "sizes", func(t *trial) error {
			return each(scanSizes, func(n int) error { return checkScanReduce(t, t.uints(n, 1<<20)) })
		}),
		newCase("scan_apply", "sizes", func(t *trial) error {
			return each(scanSizes, func(n int) error { return checkScanApply(t, t.uints(n, 1<<20)) })
		}),
		newCase("scan_spine", "block counts", func(t *trial) error {
			return each([]int{0, 1, 2, 255, 256, 257, 511, 513, 1000}, func(n int) error {
				return checkSpine(t, spine{sums: t.uints(n, 1<<20), unit: 5})
			})
		}),
		newCase("scan_spine", "isects: capacity", checkSpineCapacity),
		newCase("scan_spine", "isects: sums beyond 2^32", checkSpineOverflow),
		newCase("scan_spine", "isects: an earlier failure stays", func(t *trial) error {
			return inTurn(
				func() error {
					return checkSpine(t,
						spine{sums: []uint32{7, 9}, isects: true, capacity: 15, unit: 5, failedBy: 3, needed: 99})
				},
				func() error {
					return checkSpine(t,
						spine{sums: []uint32{7, 99}, isects: true, capacity: 15, unit: 5, failedBy: 3, needed: 99})
				},
				func() error {
					return checkSpine(t,
						spine{sums: []uint32{7, 9}, isects: true, capacity: 16, unit: 5, failedBy: 3, needed: 99})
				},
			)
		}),
		newCase("scan_apply", "all three kernels in a row", func(t *trial) error {
			return each(scanSizes, func(n int) error { return checkScan(t, t.uints(n, 1<<16)) })
		}),
		newCase("scan_apply", "all three kernels, all zero, all one, one large", func(t *trial) error {
			ones := make([]uint32, 5000)
			for i := range ones {
				ones[i] = 1
			}
			return inTurn(
				func() error { return checkScan(t, make([]uint32, 5000)) },
				func() error { return checkScan(t, ones) },
				func() error { return checkScan(t, with(make([]uint32, 5000), 2047, math.MaxUint32)) },
			)
		}),
	}
}

func countersWith(n int) []uint32 { return junkCounters(map[int]uint32{layout.NVisible: uint32(n)}) }

// blockSums returns the sums of values by block.
func blockSums(values []uint32) []uint32 {
	sums := make([]uint32, blocksOf(len(values), layout.ScanBlock))
	for i, v := range values {
		sums[i/layout.ScanBlock] += v
	}
	return sums
}

func checkScanReduce(t *trial, values []uint32) error {
	l := t.list()
	n := len(values)
	sums := output[uint32](l, "block_sums", blocksOf(n, layout.ScanBlock)+2)
	l.r.Dispatch(&shaders.ScanReduce{
		Counters: input(l, "counters", countersWith(n)), Values: input(l, "values", values), BlockSums: sums.Slice,
		Push: shaders.ScanReducePush{CountSlot: layout.NVisible},
	}, vk.Groups(blocksOf(n, layout.ScanBlock)+2)) // more workgroups than blocks
	if err := l.run(); err != nil {
		return err
	}
	got, err := sums.written(blocksOf(n, layout.ScanBlock))
	return first(err, equal("block_sums", got, blockSums(values)))
}

func checkScanApply(t *trial, values []uint32) error {
	l := t.list()
	n := len(values)
	carry, _ := ref.Scan(blockSums(values))
	data := inout(l, "values", values)
	l.r.Dispatch(&shaders.ScanApply{
		Counters: input(l, "counters", countersWith(n)), Values: data.Slice, BlockSums: input(l, "block_sums", carry),
		Push: shaders.ScanApplyPush{CountSlot: layout.NVisible},
	}, vk.Groups(blocksOf(n, layout.ScanBlock)+2))
	if err := l.run(); err != nil {
		return err
	}
	want, _ := ref.Scan(values)
	return equal("values", data.got, want)
}

// spine is one call of scan_spine.
type spine struct {
	sums             []uint32
	isects           bool
	capacity, unit   uint32
	failedBy, needed uint32 // of an earlier unit
}

func checkSpine(t *trial, s spine) error {
	l := t.list()
	n := len(s.sums)
	start := junkCounters(map[int]uint32{layout.NVisible: uint32(n) * layout.ScanBlock, layout.NIsects: 3,
		layout.NIsectsMax: 5})
	if s.failedBy != 0 {
		start[layout.Failed], start[layout.FailedUnit], start[layout.Needed] = layout.FailedSplats, s.failedBy, s.needed
	}
	p := layout.StepParams{Unit: s.unit, View: layout.View{TileWidth: 7, TileHeight: 9}}
	counters, sums := inout(l, "counters", start), inout(l, "block_sums", s.sums)
	args := output[[3]uint32](l, "dispatch_args", layout.NArgs)
	l.r.Dispatch(&shaders.ScanSpine{
		Params: input(l, "params", []layout.StepParams{p}), Counters: counters.Slice, BlockSums: sums.Slice,
		DispatchArgs: args.Slice,
		Push: shaders.ScanSpinePush{CountSlot: layout.NVisible, TotalSlot: layout.NIsects,
			Capacity: s.capacity},
		Spec: shaders.ScanSpineSpec{Isects: s.isects},
	}, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	total := uint64(0)
	for _, v := range s.sums {
		total += uint64(v)
	}
	want := append([]uint32(nil), start...)
	wantCounters(want, s, total)
	if err := equal("counters", counters.got, want); err != nil {
		return err
	}
	if offsets, _ := ref.Scan(s.sums); total <= math.MaxUint32 {
		if err := equal("block_sums", sums.got, offsets); err != nil {
			return err
		}
	}
	if !s.isects {
		_, err := args.written(0)
		return err
	}
	isects, buckets := want[layout.NIsects], uint32(0)
	if isects > 0 {
		buckets = isects/layout.LeastBucket + 7*9
	}
	return first(
		checkGrid(layout.ArgsSortIsects, args.got[layout.ArgsSortIsects], groups(isects, layout.SortBlock)),
		checkGrid(layout.ArgsBuckets, args.got[layout.ArgsBuckets], buckets),
	)
}

// wantCounters changes c as scan_spine should.
func wantCounters(c []uint32, s spine, total uint64) {
	if !s.isects {
		c[layout.NIsects] = uint32(total)
		return
	}
	// Near 2^32 the kernel may call a sum an overflow that just is none: no device binds that many pairs.
	if total >= 0xFF000000 {
		total = math.MaxUint32
	}
	if total > uint64(s.capacity) {
		if c[layout.Failed] == 0 {
			c[layout.FailedUnit] = s.unit
		}
		c[layout.Failed] |= layout.FailedIsects
		c[layout.Needed] = max(c[layout.Needed], uint32(total))
		total = 0
	}
	c[layout.NIsects] = uint32(total)
	c[layout.NIsectsMax] = max(c[layout.NIsectsMax], uint32(total))
}

func checkSpineCapacity(t *trial) error {
	sums := t.uints(300, 1<<20)
	_, total := ref.Scan(sums)
	for _, capacity := range []uint32{total, total + 1, total - 1, 0, math.MaxInt32} {
		if err := checkSpine(t, spine{sums: sums, isects: true, capacity: capacity, unit: 5}); err != nil {
			return fmt.Errorf("capacity %d for %d: %w", capacity, total, err)
		}
	}
	return checkSpine(t, spine{isects: true, capacity: 0, unit: 5})
}

// checkSpineOverflow sums that wrap once, many times, exactly to zero, within one round of the kernel and from one
// round to the next.
func checkSpineOverflow(t *trial) error {
	fill := func(n int, v uint32) []uint32 {
		s := make([]uint32, n)
		for i := range s {
			s[i] = v
		}
		return s
	}
	for name, sums := range map[string][]uint32{
		"two halves": {1 << 31, 1 << 31}, "just over": {math.MaxUint32, 1}, "largest": fill(256, math.MaxUint32),
		"zero after many":     fill(256, 1<<24),
		"from round to round": append(fill(256, 1<<23), fill(256, 1<<23)...),
		"late":                append(fill(511, 1), math.MaxUint32),
		"in the second round": append(fill(256, 0), fill(256, 1<<25)...), "many rounds": fill(1000, 1<<30),
	} {
		if err := checkSpine(t, spine{sums: sums, isects: true, capacity: 1 << 30, unit: 5}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// scan records the three kernels on values, whose number slot of counters holds. A sum for N_ISECTS must be within the
// capacity.
func (l *list) scan(params vk.Slice[layout.StepParams], counters, values vk.Slice[uint32], args vk.Slice[[3]uint32],
	n int, slot, total uint32, capacity int) {
	blocks := blocksOf(n, layout.ScanBlock)
	sums := output[uint32](l, "block_sums", max(1, blocks))
	l.r.Dispatch(&shaders.ScanReduce{
		Counters: counters, Values: values, BlockSums: sums.Slice, Push: shaders.ScanReducePush{CountSlot: slot},
	}, vk.Groups(blocks))
	l.r.Dispatch(&shaders.ScanSpine{
		Params: params, Counters: counters, BlockSums: sums.Slice, DispatchArgs: args,
		Push: shaders.ScanSpinePush{CountSlot: slot, TotalSlot: total, Capacity: uint32(capacity)},
		Spec: shaders.ScanSpineSpec{Isects: total == layout.NIsects},
	}, vk.Groups(1))
	l.r.Dispatch(&shaders.ScanApply{
		Counters: counters, Values: values, BlockSums: sums.Slice, Push: shaders.ScanApplyPush{CountSlot: slot},
	}, vk.Groups(blocks))
}

func checkScan(t *trial, values []uint32) error {
	l := t.list()
	counters, data := inout(l, "counters", countersWith(len(values))), inout(l, "values", values)
	args := output[[3]uint32](l, "dispatch_args", layout.NArgs)
	l.scan(input(l, "params", []layout.StepParams{{}}), counters.Slice, data.Slice, args.Slice, len(values),
		layout.NVisible, layout.NNew, 0)
	if err := l.run(); err != nil {
		return err
	}
	want, total := ref.Scan(values)
	return first(equal("values", data.got, want),
		equal("counters", counters.got[layout.NNew:layout.NNew+1], []uint32{total}))
}
