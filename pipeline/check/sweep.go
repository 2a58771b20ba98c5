package check

import (
	"cmp"
	"math"
	"math/bits"
	"os"
	"slices"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

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
	sorts := func(n int, widths ...int) func(t *trial) error {
		return func(t *trial) error {
			return each(oneBlock(t.d, []int{layout.SortBlock, n}, layout.SortBlock), func(n int) error {
				return each(widths, func(width int) error {
					return each(sweepShapes(t.d),
						func(s sweepShape) error { return checkSweep(t, s, t.keys(n, width), width) })
				})
			})
		}
	}
	return []Case{
		newCase("sort_count", "sizes", func(t *trial) error {
			return each(append(slices.Clone(sortSizes), 100*layout.SortBlock+5), func(n int) error {
				return first(checkSortCount(t, t.keys(n, 32), 8, 4, false),
					checkSortCount(t, t.keys(n, 13), 7, 2, false))
			})
		}),
		newCase("sort_count", "culled keys", func(t *trial) error {
			return first(checkSortCount(t, t.depthKeys(5000, 0.5), 8, 4, true),
				checkSortCount(t, t.depthKeys(3000, 1), 5, 7, true))
		}),
		newCase("sort_sweep", "sizes", func(t *trial) error {
			return each(sweepSizes(t.d), func(n int) error {
				return each(sweepShapes(t.d), func(s sweepShape) error { return checkSweep(t, s, t.keys(n, 13), 13) })
			})
		}),
		newCase("sort_sweep", "looking back", func(t *trial) error {
			return each(sweepShapes(t.d), func(s sweepShape) error {
				return each([]int{1, 2, 15, 16, 17, 31, 33, 70},
					func(before int) error { return checkLookBack(t, s, before) })
			})
		}),
		newCase("sort_sweep", "widths of keys", sorts(5000, 1, 2, 5, 6, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32)),
		newCase("sort_sweep", "equal, ascending and descending keys", checkSweepPatterns),
		newCase("sort_sweep", "depth sort", func(t *trial) error {
			return each(sweepShapes(t.d), func(s sweepShape) error {
				return each(sweepSizes(t.d), func(n int) error {
					return each([]float64{0, 0.3, 1},
						func(culled float64) error { return checkDepthSort(t, s.sorter(), t.depthKeys(n, culled)) })
				})
			})
		}),
	}
}

// checkSortCount counts digits on top of what is there, as kernels do that add to each other's counts.
func checkSortCount(t *trial, keys []uint32, bits, passes int, skipCulled bool) error {
	l := t.list()
	blocks := blocksOf(len(keys), layout.SortBlock)
	want := t.uints(passes<<bits+passes, 1000)
	tallies, published := inout(l, "tallies", slices.Clone(want)),
		output[uint32](l, "published", passes*(blocks+1)<<bits)
	l.r.Dispatch(&shaders.SortCount{
		Counters: input(l, "counters", countersWith(len(keys))), Keys: input(l, "keys", keys), Tallies: tallies.Slice,
		Published: published.Slice,
		Push: shaders.SortCountPush{CountSlot: layout.NVisible, NPasses: uint32(passes),
			MaxBlocks: uint32(blocks + 1)},
		Spec: shaders.SortCountSpec{SkipCulled: skipCulled, Bits: uint32(bits)},
	}, vk.Groups(blocks+1))
	if err := l.run(); err != nil {
		return err
	}
	for _, key := range keys {
		for p := 0; p < passes && !(skipCulled && key == layout.Culled); p++ {
			want[p<<bits+int(digit(key, p*bits, bits))]++
		}
	}
	clean := make([]uint32, len(published.got))
	for i := range clean {
		if i>>bits%(blocks+1) == blocks {
			clean[i] = guardWord
		}
	}
	return first(equal("tallies", tallies.got, want), equal("published", published.got, clean))
}

// sorter records a whole sort: see list.radixSort.
func (s sweepShape) sorter() sorter {
	return func(l *list, counters vk.Slice[uint32], args vk.Slice[[3]uint32], keys, values *buffer[uint32], keyBits int,
		depth bool) (k, v *buffer[uint32]) {
		n := len(keys.start)
		blocks := max(1, blocksOf(n, layout.SortBlock))
		passes := (keyBits + s.bits - 1) / s.bits
		tallies := inout(l, "tallies", make([]uint32, passes<<s.bits+passes))
		published := output[uint32](l, "published", passes*blocks<<s.bits)
		slot := uint32(layout.NVisible)
		if depth {
			slot = layout.NActive
		}
		grid := vk.Groups(blocksOf(n, layout.SortBlock))
		l.r.Dispatch(&shaders.SortCount{
			Counters: counters, Keys: keys.Slice, Tallies: tallies.Slice, Published: published.Slice,
			Push: shaders.SortCountPush{CountSlot: slot, NPasses: uint32(passes), MaxBlocks: uint32(blocks)},
			Spec: shaders.SortCountSpec{SkipCulled: depth, Bits: uint32(s.bits), Depths: depth},
		}, grid)
		for pass := range passes {
			toKeys, toValues := output[uint32](l, "keys_out", n), output[uint32](l, "values_out", n)
			l.r.Dispatch(&shaders.SortSweep{
				Counters: counters, Tallies: tallies.Slice, Published: published.Slice, DispatchArgs: args,
				KeysIn: keys.Slice, ValuesIn: values.Slice,
				KeysOut: toKeys.Slice, ValuesOut: toValues.Slice,
				Push: shaders.SortSweepPush{CountSlot: slot, Pass: uint32(pass), NPasses: uint32(passes),
					MaxBlocks: uint32(blocks)},
				Spec: shaders.SortSweepSpec{FirstDepthPass: depth && pass == 0, Bits: uint32(s.bits),
					SubgroupSize: s.subgroup, Depths: depth && pass == 0},
			}, grid)
			toKeys.start, toValues.start = keys.start, keys.start
			keys, values, slot = toKeys, toValues, layout.NVisible
		}
		return keys, values
	}
}

// publish returns what blocks with the given sums may have published when another looks: of some their own sum, of
// others, among them the first, that of all up to them.
func (t *trial) publish(sums []uint32) []uint32 {
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

// checkLookBack runs the last block of several alone, after the others have published: it waits for nobody.
func checkLookBack(t *trial, s sweepShape, before int) error {
	l := t.list()
	n := before*layout.SortBlock + 1 + t.IntN(layout.SortBlock)
	keys, values := t.keys(n, s.bits), t.uints(n, math.MaxUint32)
	tallies, published := make([]uint32, 1<<s.bits+1), make([]uint32, (before+1)<<s.bits)
	h := histogramOf(keys, 0, s.bits, before+1, false)
	for d := range 1 << s.bits {
		counts := h[d*(before+1) : (d+1)*(before+1)]
		for block, word := range t.publish(counts[:before]) {
			published[block<<s.bits+d] = word
			tallies[d] += counts[block]
		}
		tallies[d] += counts[before]
	}
	tallies[1<<s.bits] = uint32(before) // the ticket
	keysOut, valuesOut := output[uint32](l, "keys_out", n), output[uint32](l, "values_out", n)
	l.r.Dispatch(&shaders.SortSweep{
		Counters: input(l, "counters", countersWith(n)), Tallies: inout(l, "tallies", tallies).Slice,
		Published:    inout(l, "published", published).Slice,
		DispatchArgs: output[[3]uint32](l, "dispatch_args", layout.NArgs).Slice, KeysIn: input(l, "keys_in", keys),
		ValuesIn: input(l, "values_in", values),
		KeysOut:  keysOut.Slice, ValuesOut: valuesOut.Slice,
		Push: shaders.SortSweepPush{CountSlot: layout.NVisible, NPasses: 1, MaxBlocks: uint32(before + 1)},
		Spec: shaders.SortSweepSpec{Bits: uint32(s.bits), SubgroupSize: s.subgroup},
	}, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	order := indices(n)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	wantKeys, wantValues := make([]uint32, n), make([]uint32, n)
	for i, from := range order {
		wantKeys[i], wantValues[i] = guardWord, guardWord
		if from >= before*layout.SortBlock {
			wantKeys[i], wantValues[i] = keys[from], values[from]
		}
	}
	return first(equal("keys_out", keysOut.got, wantKeys), equal("values_out", valuesOut.got, wantValues))
}

func checkSweep(t *trial, s sweepShape, keys []uint32, bits int) error {
	return checkSort(t, s.sorter(), keys, bits)
}

func checkSweepPatterns(t *trial) error {
	return each(oneBlock(t.d, []int{layout.SortBlock - 100, 20*layout.SortBlock + 100}, layout.SortBlock),
		func(n int) error {
			return each(sweepShapes(t.d), func(s sweepShape) error { return checkPatterns(t, s.sorter(), n) })
		})
}
