package check

import (
	"fmt"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// sortShape is a way to run the radix sort. No result depends on it.
type sortShape struct {
	bits                int
	workgroup, subgroup uint32
}

// subgroupSizes returns what kernels can ask the device for, its own choice first.
func subgroupSizes(d *vk.Device) []uint32 {
	l := d.Info().Limits
	sizes := []uint32{l.SubgroupSize}
	for s := max(l.MinSubgroupSize, 4); s <= min(l.MaxSubgroupSize, 64); s *= 2 {
		if s != l.SubgroupSize && 128 <= s*l.MaxComputeWorkgroupSubgroups {
			sizes = append(sizes, s)
		}
	}
	return sizes
}

// sortShapes returns every shape that fits the device, a usual one first.
func sortShapes(d *vk.Device) (shapes []sortShape) {
	l := d.Info().Limits
	for _, size := range subgroupSizes(d) {
		for _, s := range []sortShape{{8, 256, size}, {8, 128, size}, {6, 128, size}, {6, 256, size}} {
			// The kernel's tables: counts by digit and subgroup, digit bases, and those of the prefix sum.
			shared := 4 * (s.workgroup/size<<s.bits + 1<<s.bits + layout.Group/4 + 1)
			asked := size == l.SubgroupSize || s.workgroup/size <= l.MaxComputeWorkgroupSubgroups
			if shared <= min(l.MaxComputeSharedMemorySize, 16<<10) && asked && size <= 64 {
				shapes = append(shapes, s)
			}
		}
	}
	return shapes
}

var sortSizes = []int{0, 1, 2, 255, 256, 257, 1023, 2047, 2048, 2049, 4095, 4097, 3*layout.SortBlock + 1}

func sortCases() []Case {
	return []Case{
		newCase("sort_histogram", "sizes", func(t *trial) error {
			return each(sortSizes, func(n int) error {
				return first(checkHistogram(t, t.keys(n, 32), 0, 8, false),
					checkHistogram(t, t.keys(n, 32), 27, 5, false))
			})
		}),
		newCase("sort_histogram", "culled keys", func(t *trial) error {
			return inTurn(
				func() error { return checkHistogram(t, t.depthKeys(5000, 0.5), 0, 8, true) },
				func() error { return checkHistogram(t, t.depthKeys(5000, 0.5), 0, 6, true) },
				func() error { return checkHistogram(t, t.depthKeys(300, 1), 0, 8, true) },
			)
		}),
		newCase("sort_scan", "block counts", func(t *trial) error {
			return each([]int{0, 1, 2, 255, 256, 257, 600},
				func(blocks int) error { return checkSortScan(t, blocks, 3) })
		}),
		newCase("sort_scan", "digits", func(t *trial) error {
			return each([]int{1, 2, 5, 6, 7, 8}, func(bits int) error { return checkSortScan(t, 3, bits) })
		}),
		newCase("sort_scatter", "one pass, sizes", func(t *trial) error {
			return each(sortSizes, func(n int) error {
				return each(sortShapes(t.d),
					func(s sortShape) error { return checkScatter(t, s, t.keys(n, 32), 5, min(6, s.bits)) })
			})
		}),
		newCase("sort_scatter", "one pass, digits", func(t *trial) error {
			return each(sortShapes(t.d), func(s sortShape) error {
				return each([]int{1, 2, 3, 5, s.bits},
					func(bits int) error { return checkScatter(t, s, t.keys(2500, 32), 32-bits, bits) })
			})
		}),
		newCase("sort_scatter", "whole sort, sizes", wholeSorts(sortSizes, []int{13})),
		newCase("sort_scatter", "whole sort, widths of keys",
			wholeSorts([]int{2500}, []int{1, 2, 5, 6, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32})),
		newCase("sort_scatter", "whole sort, equal, ascending and descending keys", func(t *trial) error {
			return each(sortShapes(t.d),
				func(s sortShape) error { return checkPatterns(t, s.radixSort, 2*layout.SortBlock+100) })
		}),
		newCase("sort_scatter", "depth sort", checkDepthSorts),
	}
}

// keys returns random keys of the given width.
func (t *trial) keys(n, bits int) []uint32 {
	k := make([]uint32, n)
	for i := range k {
		k[i] = t.Uint32() >> (32 - bits)
	}
	return k
}

// depthKeys returns the bits of positive floats, many of them equal, and a share of culled keys.
func (t *trial) depthKeys(n int, culled float64) []uint32 {
	k := make([]uint32, n)
	for i := range k {
		switch {
		case t.Float64() < culled:
			k[i] = layout.Culled
		case t.IntN(3) == 0:
			k[i] = math.Float32bits(float32(t.IntN(20)+1) / 4)
		default:
			k[i] = math.Float32bits(float32(math.Exp(40*t.Float64() - 20)))
		}
	}
	return k
}

func digit(key uint32, shift, bits int) uint32 { return key >> shift & (1<<bits - 1) }

// histogramOf returns [2^bits][maxBlocks] counts; rows beyond the blocks hold guard words.
func histogramOf(keys []uint32, shift, bits, maxBlocks int, skipCulled bool) []uint32 {
	h := make([]uint32, maxBlocks<<bits)
	for i := range h {
		if i%maxBlocks >= blocksOf(len(keys), layout.SortBlock) {
			h[i] = guardWord
		}
	}
	for i, key := range keys {
		if !skipCulled || key != layout.Culled {
			h[int(digit(key, shift, bits))*maxBlocks+i/layout.SortBlock]++
		}
	}
	return h
}

func checkHistogram(t *trial, keys []uint32, shift, bits int, skipCulled bool) error {
	l := t.list()
	blocks := blocksOf(len(keys), layout.SortBlock)
	maxBlocks := blocks + 2
	h := output[uint32](l, "histogram", maxBlocks<<bits)
	l.r.Dispatch(&shaders.SortHistogram{
		Counters: input(l, "counters", countersWith(len(keys))), Keys: input(l, "keys", keys), Histogram: h.Slice,
		Push: shaders.SortHistogramPush{CountSlot: layout.NVisible, Shift: uint32(shift), Bits: uint32(bits),
			MaxBlocks: uint32(maxBlocks)},
		Spec: shaders.SortHistogramSpec{SkipCulled: skipCulled},
	}, vk.Groups(blocks+1))
	if err := l.run(); err != nil {
		return err
	}
	return equal("histogram", h.got, histogramOf(keys, shift, bits, maxBlocks, skipCulled))
}

// scanHistogram returns h with exclusive sums along its rows, and the totals.
func scanHistogram(h []uint32, blocks, maxBlocks int) (scanned, totals []uint32) {
	scanned = slices.Clone(h)
	for row := 0; row < len(h); row += maxBlocks {
		offsets, total := ref.Scan(h[row : row+blocks])
		copy(scanned[row:], offsets)
		totals = append(totals, total)
	}
	return scanned, totals
}

func checkSortScan(t *trial, blocks, bits int) error {
	l := t.list()
	maxBlocks := blocks + 3
	counts := t.uints(maxBlocks<<bits, layout.SortBlock+1)
	h, totals := inout(l, "histogram", counts), output[uint32](l, "totals", 1<<bits)
	l.r.Dispatch(&shaders.SortScan{
		Counters: input(l, "counters", countersWith(max(0, blocks*layout.SortBlock-7))), Histogram: h.Slice,
		Totals: totals.Slice,
		Push:   shaders.SortScanPush{CountSlot: layout.NVisible, MaxBlocks: uint32(maxBlocks)},
	}, vk.Groups(1<<bits))
	if err := l.run(); err != nil {
		return err
	}
	want, sums := scanHistogram(counts, blocks, maxBlocks)
	return first(equal("histogram", h.got, want), equal("totals", totals.got, sums))
}

func checkScatter(t *trial, s sortShape, keys []uint32, shift, bits int) error {
	l := t.list()
	n := len(keys)
	blocks := blocksOf(n, layout.SortBlock)
	values := t.uints(n, math.MaxUint32)
	h, totals := scanHistogram(histogramOf(keys, shift, bits, blocks+1, false), blocks, blocks+1)
	keysOut, valuesOut := output[uint32](l, "keys_out", n), output[uint32](l, "values_out", n)
	counters, args := inout(l, "counters", countersWith(n)), output[[3]uint32](l, "dispatch_args", layout.NArgs)
	l.r.Dispatch(&shaders.SortScatter{
		Counters: counters.Slice, Histogram: input(l, "histogram", h), Totals: input(l, "totals", totals),
		DispatchArgs: args.Slice,
		KeysIn:       input(l, "keys_in", keys), ValuesIn: input(l, "values_in", values), KeysOut: keysOut.Slice,
		ValuesOut: valuesOut.Slice,
		Push: shaders.SortScatterPush{CountSlot: layout.NVisible, Shift: uint32(shift), Bits: uint32(bits),
			MaxBlocks: uint32(blocks + 1)},
		Spec: s.spec(false),
	}, vk.Groups(blocks+1))
	if err := l.run(); err != nil {
		return err
	}
	wantKeys, wantValues := sorted(keys, values, func(k uint32) uint32 { return digit(k, shift, bits) })
	_, err := args.written(0)
	return first(equal("keys_out", keysOut.got, wantKeys), equal("values_out", valuesOut.got, wantValues), err,
		equal("counters", counters.got, countersWith(n)))
}

func (s sortShape) spec(firstDepthPass bool) shaders.SortScatterSpec {
	return shaders.SortScatterSpec{
		WorkgroupSize: s.workgroup, FirstDepthPass: firstDepthPass, Depths: firstDepthPass, Radix: 1 << s.bits,
		NSubgroups: s.workgroup / s.subgroup, SubgroupSize: s.subgroup,
	}
}

// sorted returns keys and values in the stable order of by(key).
func sorted(keys, values []uint32, by func(uint32) uint32) (k, v []uint32) {
	order := indices(len(keys))
	slices.SortStableFunc(order, func(a, b int) int {
		if x, y := by(keys[a]), by(keys[b]); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return 0
	})
	k, v = make([]uint32, len(keys)), make([]uint32, len(keys))
	for i, from := range order {
		k[i], v[i] = keys[from], values[from]
	}
	return k, v
}

// sorter records a whole sort by keyBits bits. A depth sort drops the culled keys, and its values are the indices.
type sorter func(
	l *list, counters vk.Slice[uint32], args vk.Slice[[3]uint32], keys, values *buffer[uint32], keyBits int, depth bool,
) (k, v *buffer[uint32])

// radixSort is a sorter by sort_histogram, sort_scan and sort_scatter.
func (s sortShape) radixSort(
	l *list, counters vk.Slice[uint32], args vk.Slice[[3]uint32], keys, values *buffer[uint32], keyBits int, depth bool,
) (k, v *buffer[uint32]) {
	n := len(keys.start)
	maxBlocks := max(1, blocksOf(n, layout.SortBlock))
	for shift := 0; shift < keyBits; shift += s.bits {
		bits := min(s.bits, keyBits-shift)
		h, totals := output[uint32](l, "histogram", maxBlocks<<bits), output[uint32](l, "totals", 1<<bits)
		toKeys, toValues := output[uint32](l, "keys_out", n), output[uint32](l, "values_out", n)
		drop := depth && shift == 0
		slot := uint32(layout.NVisible)
		if drop {
			slot = layout.NActive
		}
		l.r.Dispatch(&shaders.SortHistogram{
			Counters: counters, Keys: keys.Slice, Histogram: h.Slice,
			Push: shaders.SortHistogramPush{CountSlot: slot, Shift: uint32(shift), Bits: uint32(bits),
				MaxBlocks: uint32(maxBlocks)},
			Spec: shaders.SortHistogramSpec{SkipCulled: drop, Depths: drop},
		}, vk.Groups(blocksOf(n, layout.SortBlock)))
		l.r.Dispatch(&shaders.SortScan{
			Counters: counters, Histogram: h.Slice, Totals: totals.Slice,
			Push: shaders.SortScanPush{CountSlot: slot, MaxBlocks: uint32(maxBlocks)},
		}, vk.Groups(1<<bits))
		l.r.Dispatch(&shaders.SortScatter{
			Counters: counters, Histogram: h.Slice, Totals: totals.Slice, DispatchArgs: args, KeysIn: keys.Slice,
			ValuesIn: values.Slice,
			KeysOut:  toKeys.Slice, ValuesOut: toValues.Slice,
			Push: shaders.SortScatterPush{CountSlot: slot, Shift: uint32(shift), Bits: uint32(bits),
				MaxBlocks: uint32(maxBlocks)},
			Spec: s.spec(drop),
		}, vk.Groups(blocksOf(n, layout.SortBlock)))
		toKeys.start, toValues.start = keys.start, keys.start
		keys, values = toKeys, toValues
	}
	return keys, values
}

func wholeSorts(sizes, widths []int) func(t *trial) error {
	return func(t *trial) error {
		return each(sortShapes(t.d), func(s sortShape) error {
			return each(sizes, func(n int) error {
				return each(widths, func(bits int) error { return checkSort(t, s.radixSort, t.keys(n, bits), bits) })
			})
		})
	}
}

func checkSort(t *trial, s sorter, keys []uint32, bits int) error {
	l := t.list()
	values := t.uints(len(keys), math.MaxUint32)
	counters, args := inout(l, "counters", countersWith(len(keys))), output[[3]uint32](l, "dispatch_args", layout.NArgs)
	k, v := s(l, counters.Slice, args.Slice, inout(l, "keys", keys), inout(l, "values", values), bits, false)
	if err := l.run(); err != nil {
		return err
	}
	wantKeys, wantValues := sorted(keys, values, func(k uint32) uint32 { return k })
	return first(equal("keys_out", k.got, wantKeys), equal("values_out", v.got, wantValues))
}

func checkPatterns(t *trial, s sorter, n int) error {
	up, down, same, two := make([]uint32, n), make([]uint32, n), make([]uint32, n), make([]uint32, n)
	for i := range up {
		up[i], down[i], same[i], two[i] = uint32(i), uint32(n-i), 0x1234, uint32(i&1)*math.MaxUint16
	}
	for name, keys := range map[string][]uint32{"ascending": up, "descending": down, "equal": same, "two values": two,
		"zero": make([]uint32, n)} {
		if err := checkSort(t, s, keys, 16); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func checkDepthSorts(t *trial) error {
	for _, s := range sortShapes(t.d) {
		for _, n := range sortSizes {
			for _, culled := range []float64{0, 0.3, 1} {
				if err := checkDepthSort(t, s.radixSort, t.depthKeys(n, culled)); err != nil {
					return fmt.Errorf("%v: %d keys, %g culled: %w", s, n, culled, err)
				}
			}
		}
	}
	return nil
}

func checkDepthSort(t *trial, s sorter, keys []uint32) error {
	l := t.list()
	n := len(keys)
	start := junkCounters(map[int]uint32{layout.NActive: uint32(n), layout.NVisible: 0})
	counters, args := inout(l, "counters", start), output[[3]uint32](l, "dispatch_args", layout.NArgs)
	in := inout(l, "keys", keys)
	_, values := s(l, counters.Slice, args.Slice, in, in, layout.DepthBits, true)
	if err := l.run(); err != nil {
		return err
	}
	want := ref.SortDepth(keys)
	visible := uint32(len(want))
	if n == 0 {
		return equal("counters", counters.got, start) // nothing ran, so nothing was counted: begin has set it to 0
	}
	got, err := values.written(len(want))
	start[layout.NVisible] = visible
	return first(
		err, equal("values_out", got, want), equal("counters", counters.got, start),
		checkGrid(layout.ArgsSortVisible, args.got[layout.ArgsSortVisible], groups(visible, layout.SortBlock)),
		checkGrid(layout.ArgsVisible, args.got[layout.ArgsVisible], groups(visible, layout.Group)),
		checkGrid(layout.ArgsReduce, args.got[layout.ArgsReduce], groups(visible, layout.ReduceRanks)),
		checkGrid(layout.ArgsScanVisible, args.got[layout.ArgsScanVisible], groups(visible, layout.ScanBlock)),
	)
}
