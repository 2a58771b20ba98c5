package check

import (
	"cmp"
	"math"
	"math/bits"
	"os"
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
	shapes := func(check func(t *trial, s sortShape)) func(t *trial) {
		return func(t *trial) { eachOf(sortShapes(t.d), func(s sortShape) { check(t, s) }) }
	}
	return slices.Concat(casesOf("sort_histogram", table{
		{"sizes", over(sortSizes, func(t *trial, n int) {
			checkHistogram(t, t.keys(n, 32), 0, 8, false)
			checkHistogram(t, t.keys(n, 32), 27, 5, false)
		})},
		{"culled keys", func(t *trial) {
			checkHistogram(t, t.depthKeys(5000, 0.5), 0, 8, true)
			checkHistogram(t, t.depthKeys(5000, 0.5), 0, 6, true)
			checkHistogram(t, t.depthKeys(300, 1), 0, 8, true)
		}},
	}), casesOf("sort_scan", table{
		{"block counts", over([]int{0, 1, 2, 255, 256, 257, 600}, func(t *trial, n int) { checkSortScan(t, n, 3) })},
		{"digits", over([]int{1, 2, 5, 6, 7, 8}, func(t *trial, bits int) { checkSortScan(t, 3, bits) })},
	}), casesOf("sort_scatter", table{
		{"one pass, sizes", over(sortSizes, func(t *trial, n int) {
			shapes(func(t *trial, s sortShape) { checkScatter(t, s, t.keys(n, 32), 5, min(6, s.bits)) })(t)
		})},
		{"one pass, digits", shapes(func(t *trial, s sortShape) {
			eachOf([]int{1, 2, 3, 5, s.bits}, func(bits int) { checkScatter(t, s, t.keys(2500, 32), 32-bits, bits) })
		})},
		{"whole sort, sizes", wholeSorts(sortSizes, []int{13})},
		{"whole sort, widths of keys",
			wholeSorts([]int{2500}, []int{1, 2, 5, 6, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32})},
		{"whole sort, equal, ascending and descending keys", shapes(func(t *trial, s sortShape) {
			checkPatterns(t, s.radixSort, 2*layout.SortBlock+100)
		})},
		{"depth sort", shapes(func(t *trial, s sortShape) { checkDepthSorts(t, s.radixSort, sortSizes) })},
	}))
}

// keys returns random keys of the given width.
func (t source) keys(n, bits int) []uint32 {
	k := make([]uint32, n)
	for i := range k {
		k[i] = t.Uint32() >> (32 - bits)
	}
	return k
}

// depthKeys returns the bits of positive floats, many of them equal, and a share of culled keys.
func (t source) depthKeys(n int, culled float64) []uint32 {
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

func checkHistogram(t *trial, keys []uint32, shift, bits int, skipCulled bool) {
	most := blocksOf(len(keys), layout.SortBlock) + 2
	t.dispatch(&shaders.SortHistogram{Counters: in(t, countersWith(len(keys))...), Keys: in(t, keys...),
		Histogram: out[uint32](t, most<<bits, exactly(histogramOf(keys, shift, bits, most, skipCulled)...)),
		Push: shaders.SortHistogramPush{CountSlot: layout.NVisible, Shift: uint32(shift), Bits: uint32(bits),
			MaxBlocks: uint32(most)}, Spec: shaders.SortHistogramSpec{SkipCulled: skipCulled}}, vk.Groups(most-1))
	t.run()
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

func checkSortScan(t *trial, blocks, bits int) {
	most := blocks + 3
	h := t.uints(most<<bits, layout.SortBlock+1)
	want, sums := scanHistogram(h, blocks, most)
	t.dispatch(&shaders.SortScan{Counters: in(t, countersWith(max(0, blocks*layout.SortBlock-7))...),
		Histogram: update(t, h, exactly(want...)), Totals: out[uint32](t, 1<<bits, exactly(sums...)),
		Push: shaders.SortScanPush{CountSlot: layout.NVisible, MaxBlocks: uint32(most)}}, vk.Groups(1<<bits))
	t.run()
}

func checkScatter(t *trial, s sortShape, keys []uint32, shift, bits int) {
	n, start := len(keys), countersWith(len(keys))
	blocks := blocksOf(n, layout.SortBlock)
	values := t.uints(n, math.MaxUint32)
	h, totals := scanHistogram(histogramOf(keys, shift, bits, blocks+1, false), blocks, blocks+1)
	wantKeys, wantValues := sorted(keys, values, func(k uint32) uint32 { return digit(k, shift, bits) })
	t.dispatch(&shaders.SortScatter{Counters: update(t, start, exactly(start...)), Histogram: in(t, h...), Totals: in(t,
		totals...), DispatchArgs: out[[3]uint32](t, layout.NArgs, nothing), KeysIn: in(t, keys...), ValuesIn: in(t,
		values...), KeysOut: out[uint32](t, n, exactly(wantKeys...)), ValuesOut: out[uint32](t, n,
		exactly(wantValues...)), Push: shaders.SortScatterPush{CountSlot: layout.NVisible, Shift: uint32(shift),
		Bits: uint32(bits), MaxBlocks: uint32(blocks + 1)}, Spec: s.spec(false)}, vk.Groups(blocks+1))
	t.run()
}

func (s sortShape) spec(firstDepthPass bool) shaders.SortScatterSpec {
	return shaders.SortScatterSpec{WorkgroupSize: s.workgroup, FirstDepthPass: firstDepthPass, Depths: firstDepthPass,
		Radix: 1 << s.bits, NSubgroups: s.workgroup / s.subgroup, SubgroupSize: s.subgroup}
}

// sorted returns keys and values in the stable order of by(key).
func sorted(keys, values []uint32, by func(uint32) uint32) (k, v []uint32) {
	order := indices(len(keys))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(by(keys[a]), by(keys[b])) })
	for _, from := range order {
		k, v = append(k, keys[from]), append(v, values[from])
	}
	return k, v
}

// sorter records a whole sort of n keys by keyBits bits. A depth sort drops the culled keys, and its values are the
// indices.
type sorter func(t *trial, counters vk.Slice[uint32], args vk.Slice[[3]uint32], keys, values vk.Slice[uint32], n,
	keyBits int, depth bool) (k, v vk.Slice[uint32])

// radixSort is a sorter by sort_histogram, sort_scan and sort_scatter.
func (s sortShape) radixSort(t *trial, counters vk.Slice[uint32], args vk.Slice[[3]uint32], keys,
	values vk.Slice[uint32], n, keyBits int, depth bool) (k, v vk.Slice[uint32]) {
	maxBlocks := max(1, blocksOf(n, layout.SortBlock))
	for shift := 0; shift < keyBits; shift += s.bits {
		bits := min(s.bits, keyBits-shift)
		h, totals := scratch[uint32](t, maxBlocks<<bits), scratch[uint32](t, 1<<bits)
		toKeys, toValues := scratch[uint32](t, n), scratch[uint32](t, n)
		drop, slot := depth && shift == 0, uint32(layout.NVisible)
		if drop {
			slot = layout.NActive
		}
		t.dispatch(&shaders.SortHistogram{Counters: counters, Keys: keys, Histogram: h,
			Push: shaders.SortHistogramPush{CountSlot: slot, Shift: uint32(shift), Bits: uint32(bits),
				MaxBlocks: uint32(maxBlocks)}, Spec: shaders.SortHistogramSpec{SkipCulled: drop, Depths: drop}},
			vk.Groups(blocksOf(n, layout.SortBlock)))
		t.dispatch(&shaders.SortScan{Counters: counters, Histogram: h, Totals: totals,
			Push: shaders.SortScanPush{CountSlot: slot, MaxBlocks: uint32(maxBlocks)}}, vk.Groups(1<<bits))
		t.dispatch(&shaders.SortScatter{Counters: counters, Histogram: h, Totals: totals, DispatchArgs: args,
			KeysIn: keys, ValuesIn: values, KeysOut: toKeys, ValuesOut: toValues,
			Push: shaders.SortScatterPush{CountSlot: slot, Shift: uint32(shift), Bits: uint32(bits),
				MaxBlocks: uint32(maxBlocks)}, Spec: s.spec(drop)}, vk.Groups(blocksOf(n, layout.SortBlock)))
		keys, values = toKeys, toValues
	}
	return keys, values
}

func wholeSorts(sizes, widths []int) func(t *trial) {
	return func(t *trial) {
		eachOf(sortShapes(t.d), func(s sortShape) {
			eachOf(sizes, func(n int) {
				eachOf(widths, func(bits int) { checkSort(t, s.radixSort, t.keys(n, bits), bits) })
			})
		})
	}
}

func checkSort(t *trial, s sorter, keys []uint32, bits int) {
	values := t.uints(len(keys), math.MaxUint32)
	k, v := s(t, scratchOf(t, countersWith(len(keys))), argsOf(t, nil), scratchOf(t, keys), scratchOf(t, values),
		len(keys), bits, false)
	t.run()
	wantKeys, wantValues := sorted(keys, values, func(k uint32) uint32 { return k })
	same("keys_out", got(t, k), wantKeys)
	same("values_out", got(t, v), wantValues)
}

func checkPatterns(t *trial, s sorter, n int) {
	up, down, same, two := make([]uint32, n), make([]uint32, n), make([]uint32, n), make([]uint32, n)
	for i := range up {
		up[i], down[i], same[i], two[i] = uint32(i), uint32(n-i), 0x1234, uint32(i&1)*math.MaxUint16
	}
	for name, keys := range map[string][]uint32{"ascending": up, "descending": down, "equal": same, "two values": two,
		"zero": make([]uint32, n)} {
		during(name, func() { checkSort(t, s, keys, 16) })
	}
}

func checkDepthSorts(t *trial, s sorter, sizes []int) {
	eachOf(sizes, func(n int) {
		eachOf([]float64{0, 0.3, 1}, func(culled float64) { checkDepthSort(t, s, t.depthKeys(n, culled)) })
	})
}

func checkDepthSort(t *trial, s sorter, keys []uint32) {
	want := ref.SortDepth(keys)
	visible := uint32(len(want))
	start := junkCounters(counts{layout.NActive: uint32(len(keys)), layout.NVisible: 0})
	grids := counts{layout.ArgsSortVisible: groups(visible, layout.SortBlock), layout.ArgsVisible: groups(visible,
		layout.Group), layout.ArgsReduce: groups(visible, layout.ReduceRanks), layout.ArgsScanVisible: groups(visible,
		layout.ScanBlock)}
	if len(keys) == 0 {
		grids = nil // nothing ran, so nothing was counted: begin has set it to 0
	}
	from := scratchOf(t, keys)
	_, values := s(t, update(t, start, exactly(with(start, layout.NVisible, visible)...)), argsOf(t, grids), from, from,
		len(keys), layout.DepthBits, true)
	t.run()
	same("values_out", head(t, values, len(want)), want)
}

// sweepShape is a way to run the sort by sort_count and sort_sweep. No result depends on it.
type sweepShape struct {
	bits     int // of a digit
	subgroup uint32
}

// sweepShapes returns for each subgroup size that the device has the widest digits that leave room for the tables of
// the workgroup's subgroups, and narrower ones.
func sweepShapes(d *vk.Device) (shapes []sweepShape) {
	l := d.Info().Limits
	for _, size := range subgroupSizes(d) {
		most := min(8, bits.Len32(layout.SortBlock*size/layout.Group)-1)
		if size <= 64 && (size == l.SubgroupSize || layout.Group/size <= l.MaxComputeWorkgroupSubgroups) {
			shapes = append(shapes, sweepShape{most, size}, sweepShape{most - 1, size})
		}
	}
	return shapes
}

// oneThread, set to 1, lets software Vulkan run one workgroup after another, so that none has to wait.
const oneThread = "LP_NUM_THREADS"

// oneBlock leaves out of sizes what takes several workgroups where those may not wait for each other: there such
// kernels are not used either.
func oneBlock(d *vk.Device, sizes []int, block int) []int {
	info := d.Info()
	if info.ForwardProgress() || info.Type == vk.CPU && os.Getenv(oneThread) == "1" {
		return sizes
	}
	return slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n > block })
}

// sweepSizes are those of the sort and some with more blocks than are looked at at once.
func sweepSizes(d *vk.Device) []int {
	return oneBlock(d, append(slices.Clone(sortSizes), 16*layout.SortBlock, 40*layout.SortBlock-1), layout.SortBlock)
}

func sweepCases() []Case {
	shapes := func(check func(t *trial, s sweepShape)) func(t *trial) {
		return func(t *trial) { eachOf(sweepShapes(t.d), func(s sweepShape) { check(t, s) }) }
	}
	blocks := func(sizes []int, check func(t *trial, s sweepShape, n int)) func(t *trial) {
		return func(t *trial) {
			eachOf(oneBlock(t.d, sizes, layout.SortBlock), func(n int) {
				shapes(func(t *trial, s sweepShape) { check(t, s, n) })(t)
			})
		}
	}
	return slices.Concat(casesOf("sort_count", table{
		{"sizes", over(append(slices.Clone(sortSizes), 100*layout.SortBlock+5), func(t *trial, n int) {
			checkSortCount(t, t.keys(n, 32), 8, 4, false)
			checkSortCount(t, t.keys(n, 13), 7, 2, false)
		})},
		{"culled keys", func(t *trial) {
			checkSortCount(t, t.depthKeys(5000, 0.5), 8, 4, true)
			checkSortCount(t, t.depthKeys(3000, 1), 5, 7, true)
		}},
	}), casesOf("sort_sweep", table{
		{"sizes", func(t *trial) {
			blocks(sweepSizes(t.d),
				func(t *trial, s sweepShape, n int) { checkSort(t, s.sorter, t.keys(n, 13), 13) })(t)
		}},
		{"looking back", shapes(func(t *trial, s sweepShape) {
			eachOf([]int{1, 2, 15, 16, 17, 31, 33, 70}, func(before int) { checkLookBack(t, s, before) })
		})},
		{"widths of keys", blocks([]int{layout.SortBlock, 5000}, func(t *trial, s sweepShape, n int) {
			eachOf([]int{1, 2, 5, 6, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32},
				func(width int) { checkSort(t, s.sorter, t.keys(n, width), width) })
		})},
		{"equal, ascending and descending keys", blocks([]int{layout.SortBlock - 100, 20*layout.SortBlock + 100},
			func(t *trial, s sweepShape, n int) { checkPatterns(t, s.sorter, n) })},
		{"depth sort", shapes(func(t *trial, s sweepShape) { checkDepthSorts(t, s.sorter, sweepSizes(t.d)) })},
	}))
}

// checkSortCount counts digits on top of what is there, as kernels do that add to each other's counts.
func checkSortCount(t *trial, keys []uint32, bits, passes int, skipCulled bool) {
	most := blocksOf(len(keys), layout.SortBlock) + 1
	start := t.uints(passes<<bits+passes, 1000)
	want := slices.Clone(start)
	for _, key := range keys {
		for p := 0; p < passes && !(skipCulled && key == layout.Culled); p++ {
			want[p<<bits+int(digit(key, p*bits, bits))]++
		}
	}
	clean := make([]uint32, passes*most<<bits)
	for i := range clean {
		if i>>bits%most == most-1 {
			clean[i] = guardWord
		}
	}
	t.dispatch(&shaders.SortCount{Counters: in(t, countersWith(len(keys))...), Keys: in(t, keys...), Tallies: update(t,
		start, exactly(want...)), Published: out[uint32](t, len(clean), exactly(clean...)),
		Push: shaders.SortCountPush{CountSlot: layout.NVisible, NPasses: uint32(passes), MaxBlocks: uint32(most)},
		Spec: shaders.SortCountSpec{SkipCulled: skipCulled, Bits: uint32(bits)}}, vk.Groups(most))
	t.run()
}

// sorter records a whole sort: see sortShape.radixSort.
func (s sweepShape) sorter(t *trial, counters vk.Slice[uint32], args vk.Slice[[3]uint32], keys,
	values vk.Slice[uint32], n, keyBits int, depth bool) (k, v vk.Slice[uint32]) {
	blocks, slot := max(1, blocksOf(n, layout.SortBlock)), uint32(layout.NVisible)
	passes := (keyBits + s.bits - 1) / s.bits
	tallies := scratchOf(t, make([]uint32, passes<<s.bits+passes))
	published := scratch[uint32](t, passes*blocks<<s.bits)
	if depth {
		slot = layout.NActive
	}
	grid := vk.Groups(blocksOf(n, layout.SortBlock))
	t.dispatch(&shaders.SortCount{Counters: counters, Keys: keys, Tallies: tallies, Published: published,
		Push: shaders.SortCountPush{CountSlot: slot, NPasses: uint32(passes), MaxBlocks: uint32(blocks)},
		Spec: shaders.SortCountSpec{SkipCulled: depth, Bits: uint32(s.bits), Depths: depth}}, grid)
	for pass := range passes {
		toKeys, toValues := scratch[uint32](t, n), scratch[uint32](t, n)
		t.dispatch(&shaders.SortSweep{Counters: counters, Tallies: tallies, Published: published, DispatchArgs: args,
			KeysIn: keys, ValuesIn: values, KeysOut: toKeys, ValuesOut: toValues,
			Push: shaders.SortSweepPush{CountSlot: slot, Pass: uint32(pass), NPasses: uint32(passes),
				MaxBlocks: uint32(blocks)}, Spec: shaders.SortSweepSpec{FirstDepthPass: depth && pass == 0,
				Bits: uint32(s.bits), SubgroupSize: s.subgroup, Depths: depth && pass == 0}}, grid)
		keys, values, slot = toKeys, toValues, layout.NVisible
	}
	return keys, values
}

// publish returns what blocks with the given sums may have published when another looks: of some their own sum, of
// others, among them the first, that of all up to them.
func publish(t source, sums []uint32) []uint32 {
	words, all := make([]uint32, len(sums)), uint32(0)
	often := 1 + t.IntN(2*len(sums))
	for i, sum := range sums {
		all += sum
		if i == 0 || t.IntN(often) == 0 {
			words[i] = all | 1<<31
		} else {
			words[i] = sum | 1<<30
		}
	}
	return words
}

// checkLookBack runs the last block of several alone, after the others have published: it waits for none.
func checkLookBack(t *trial, s sweepShape, before int) {
	n := before*layout.SortBlock + 1 + t.IntN(layout.SortBlock)
	keys, values := t.keys(n, s.bits), t.uints(n, math.MaxUint32)
	tallies, published := make([]uint32, 1<<s.bits+1), make([]uint32, (before+1)<<s.bits)
	h := histogramOf(keys, 0, s.bits, before+1, false)
	for d := range 1 << s.bits {
		counts := h[d*(before+1) : (d+1)*(before+1)]
		for block, word := range publish(t.source, counts[:before]) {
			published[block<<s.bits+d] = word
			tallies[d] += counts[block]
		}
		tallies[d] += counts[before]
	}
	tallies[1<<s.bits] = uint32(before) // the ticket
	order := indices(n)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	wantKeys, wantValues := slices.Repeat([]uint32{guardWord}, n), slices.Repeat([]uint32{guardWord}, n)
	for i, from := range order {
		if from >= before*layout.SortBlock {
			wantKeys[i], wantValues[i] = keys[from], values[from]
		}
	}
	t.dispatch(&shaders.SortSweep{Counters: update(t, countersWith(n), exactly(countersWith(n)...)),
		Tallies: scratchOf(t, tallies), Published: scratchOf(t, published), DispatchArgs: argsOf(t, nil), KeysIn: in(t,
			keys...), ValuesIn: in(t, values...), KeysOut: out[uint32](t, n, exactly(wantKeys...)),
		ValuesOut: out[uint32](t, n, exactly(wantValues...)), Push: shaders.SortSweepPush{CountSlot: layout.NVisible,
			NPasses: 1, MaxBlocks: uint32(before + 1)}, Spec: shaders.SortSweepSpec{Bits: uint32(s.bits),
			SubgroupSize: s.subgroup}}, vk.Groups(1))
	t.run()
}
