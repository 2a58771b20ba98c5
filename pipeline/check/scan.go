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

// scanSizes are sizes around a workgroup, a block, powers of two, and several blocks.
var scanSizes = []int{0, 1, 255, 256, 257, 1023, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 3*layout.ScanBlock + 5}

func blocksOf(n, block int) int { return (n + block - 1) / block }

func (t source) uints(n int, below uint32) []uint32 {
	x := make([]uint32, n)
	for i := range x {
		x[i] = t.Uint32N(below)
	}
	return x
}

func scanCases() []Case {
	return slices.Concat(casesOf("scan_reduce", table{
		{"sizes", over(scanSizes, func(t *trial, n int) { checkScanReduce(t, t.uints(n, 1<<20)) })},
	}), casesOf("scan_apply", table{
		{"sizes", over(scanSizes, func(t *trial, n int) { checkScanApply(t, t.uints(n, 1<<20)) })},
		{"all three kernels in a row", over(scanSizes, func(t *trial, n int) { checkScan(t, t.uints(n, 1<<16)) })},
		{"all three kernels, all zero, all one, one large", over([][]uint32{make([]uint32, 5000),
			slices.Repeat([]uint32{1}, 5000), with(make([]uint32, 5000), 2047, math.MaxUint32)}, checkScan)},
	}), casesOf("scan_spine", table{
		{"block counts", over([]int{0, 1, 2, 255, 256, 257, 511, 513, 1000},
			func(t *trial, n int) { checkSpine(t, spine{sums: t.uints(n, 1<<20)}) })},
		{"isects: capacity", checkSpineCapacity},
		{"isects: sums beyond 2^32", over(spineOverflows(), checkSpine)},
		{"isects: an earlier failure stays", over([]spine{
			{sums: []uint32{7, 9}, isects: true, capacity: 15, failedBy: 3, needed: 99},
			{sums: []uint32{7, 99}, isects: true, capacity: 15, failedBy: 3, needed: 99},
			{sums: []uint32{7, 9}, isects: true, capacity: 16, failedBy: 3, needed: 99},
		}, checkSpine)},
	}))
}

func countersWith(n int) []uint32 { return junkCounters(counts{layout.NVisible: uint32(n)}) }

func blockSums(values []uint32) []uint32 {
	sums := make([]uint32, blocksOf(len(values), layout.ScanBlock))
	for i, v := range values {
		sums[i/layout.ScanBlock] += v
	}
	return sums
}

func checkScanReduce(t *trial, values []uint32) {
	more := blocksOf(len(values), layout.ScanBlock) + 2 // workgroups than blocks
	t.dispatch(&shaders.ScanReduce{Counters: in(t, countersWith(len(values))...), Values: in(t, values...),
		BlockSums: out[uint32](t, more, exactly(blockSums(values)...)),
		Push:      shaders.ScanReducePush{CountSlot: layout.NVisible}}, vk.Groups(more))
	t.run()
}

func checkScanApply(t *trial, values []uint32) {
	carry, _ := ref.Scan(blockSums(values))
	want, _ := ref.Scan(values)
	t.dispatch(&shaders.ScanApply{Counters: in(t, countersWith(len(values))...), Values: update(t, values,
		exactly(want...)), BlockSums: in(t, carry...), Push: shaders.ScanApplyPush{CountSlot: layout.NVisible}},
		vk.Groups(len(carry)+2))
	t.run()
}

type spine struct {
	name             string
	sums             []uint32
	isects           bool
	capacity         uint32
	failedBy, needed uint32 // of an earlier unit
}

func (s spine) String() string { return fmt.Sprintf("%s, capacity %d", s.name, s.capacity) }

func checkSpine(t *trial, s spine) {
	start := junkCounters(counts{layout.NVisible: uint32(len(s.sums)) * layout.ScanBlock, layout.NIsects: 3,
		layout.NIsectsMax: 5})
	if s.failedBy != 0 {
		start[layout.Failed], start[layout.FailedUnit], start[layout.Needed] = layout.FailedSplats, s.failedBy, s.needed
	}
	p := layout.StepParams{Unit: 5, View: layout.View{TileWidth: 7, TileHeight: 9}}
	total := uint64(0)
	for _, v := range s.sums {
		total += uint64(v)
	}
	want := slices.Clone(start)
	s.count(want, total, p.Unit)
	sums := update(t, s.sums, func(b *binding) {
		if offsets, _ := ref.Scan(s.sums); total <= math.MaxUint32 {
			same(b.name, b.words, offsets)
		}
	})
	args := out[[3]uint32](t, layout.NArgs, nothing)
	if isects, buckets := want[layout.NIsects], uint32(0); s.isects {
		if isects > 0 {
			buckets = isects/layout.LeastBucket + 7*9
		}
		args = argsOf(t, counts{layout.ArgsSortIsects: groups(isects, layout.SortBlock), layout.ArgsBuckets: buckets})
	}
	t.dispatch(&shaders.ScanSpine{Params: in(t, p), Counters: update(t, start, exactly(want...)), BlockSums: sums,
		DispatchArgs: args, Push: shaders.ScanSpinePush{CountSlot: layout.NVisible, TotalSlot: layout.NIsects,
			Capacity: s.capacity}, Spec: shaders.ScanSpineSpec{Isects: s.isects}}, vk.Groups(1))
	t.run()
}

// count changes c as scan_spine should.
func (s spine) count(c []uint32, total uint64, unit uint32) {
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
			c[layout.FailedUnit] = unit
		}
		c[layout.Failed] |= layout.FailedIsects
		c[layout.Needed] = max(c[layout.Needed], uint32(total))
		total = 0
	}
	c[layout.NIsects] = uint32(total)
	c[layout.NIsectsMax] = max(c[layout.NIsectsMax], uint32(total))
}

func checkSpineCapacity(t *trial) {
	sums := t.uints(300, 1<<20)
	_, total := ref.Scan(sums)
	eachOf([]uint32{total, total + 1, total - 1, 0, math.MaxInt32},
		func(capacity uint32) { checkSpine(t, spine{sums: sums, isects: true, capacity: capacity}) })
	checkSpine(t, spine{isects: true})
}

// spineOverflows are sums that wrap once, many times, exactly to zero, within one round of the kernel and from one
// round to the next.
func spineOverflows() (list []spine) {
	fill := func(n int, v uint32) []uint32 { return slices.Repeat([]uint32{v}, n) }
	for name, sums := range map[string][]uint32{
		"two halves": {1 << 31, 1 << 31}, "just over": {math.MaxUint32, 1}, "largest": fill(256, math.MaxUint32),
		"zero after many":     fill(256, 1<<24),
		"from round to round": fill(512, 1<<23), "late": append(fill(511, 1), math.MaxUint32),
		"in the second round": append(fill(256, 0), fill(256, 1<<25)...), "many rounds": fill(1000, 1<<30),
	} {
		list = append(list, spine{name: name, sums: sums, isects: true, capacity: 1 << 30})
	}
	return list
}

// scan records the three kernels on values, whose number slot of counters holds. A sum for N_ISECTS must be within the
// capacity.
func (t *trial) scan(params vk.Slice[layout.StepParams], counters, values vk.Slice[uint32], args vk.Slice[[3]uint32],
	n int, slot, total uint32, capacity int) {
	blocks := blocksOf(n, layout.ScanBlock)
	sums := scratch[uint32](t, max(1, blocks))
	t.dispatch(&shaders.ScanReduce{Counters: counters, Values: values, BlockSums: sums,
		Push: shaders.ScanReducePush{CountSlot: slot}}, vk.Groups(blocks))
	t.dispatch(&shaders.ScanSpine{Params: params, Counters: counters, BlockSums: sums, DispatchArgs: args,
		Push: shaders.ScanSpinePush{CountSlot: slot, TotalSlot: total, Capacity: uint32(capacity)},
		Spec: shaders.ScanSpineSpec{Isects: total == layout.NIsects}}, vk.Groups(1))
	t.dispatch(&shaders.ScanApply{Counters: counters, Values: values, BlockSums: sums,
		Push: shaders.ScanApplyPush{CountSlot: slot}}, vk.Groups(blocks))
}

func checkScan(t *trial, values []uint32) {
	want, total := ref.Scan(values)
	start := countersWith(len(values))
	t.scan(in(t, layout.StepParams{}), update(t, start, exactly(with(start, layout.NNew, total)...)),
		update(t, values, exactly(want...)), argsOf(t, nil), len(values), layout.NVisible, layout.NNew, 0)
	t.run()
}

type counts = map[int]uint32

// junkCounters returns counters of an earlier unit.
func junkCounters(set counts) []uint32 {
	c := slices.Repeat([]uint32{0x51515151}, layout.NCounters)
	c[layout.Failed], c[layout.FailedUnit], c[layout.Needed] = 0, 0, 0
	for slot, v := range set {
		c[slot] = v
	}
	return c
}

func beginCases() []Case {
	sizes := []uint32{0, 1, 255, 256, 257, 2047, 2048, 2049, 1<<16*256 - 1, 1<<16*256 + 1, 1<<27 + 1, 1<<30 + 7}
	return casesOf("begin", table{
		{"sizes", over(sizes, func(t *trial, n uint32) { checkBegin(t, n, 0, 3, 5) })},
		{"tallies", over([]int{1, 255, 256, 257, 511, 512, 513, 10_000}, func(t *trial, n int) {
			clearTallies(t, n, 1)
			clearTallies(t, n, 2)
			clearTallies(t, n, 5)
		})},
		{"tiles", over([][2]uint32{{1, 1}, {255, 1}, {16, 16}, {257, 1}, {300, 400}},
			func(t *trial, s [2]uint32) { checkBegin(t, 7, 0, s[0], s[1]) })},
		{"after a failure nothing runs", over([]uint32{layout.FailedIsects, layout.FailedSplats, 3},
			func(t *trial, failed uint32) { checkBegin(t, 1000, failed, 3, 5) })},
	})
}

func checkBegin(t *trial, n, failed, tileWidth, tileHeight uint32) {
	start := junkCounters(counts{layout.NSplats: n, layout.Failed: failed, layout.FailedUnit: 9, layout.Needed: 77})
	want, tiles := slices.Clone(start), tileWidth*tileHeight
	if failed != 0 {
		n, tiles = 0, 0
	}
	clear(want[layout.NActive:])
	want[layout.NActive] = n
	counters := update(t, start, exactly(want...))
	t.dispatch(&shaders.Begin{Params: in(t, layout.StepParams{View: layout.View{TileWidth: tileWidth,
		TileHeight: tileHeight}}), Counters: counters, DispatchArgs: argsOf(t, unitGrids(n, tiles)),
		Tallies: counters.At(0, 0)}, vk.Groups(1))
	t.run()
}

// clearTallies clears n words by a number of workgroups and wants the words after them left alone.
func clearTallies(t *trial, n, groups int) {
	start := slices.Repeat([]uint32{7}, n+3)
	want := slices.Clone(start)
	clear(want[:n])
	t.dispatch(&shaders.Begin{Params: in(t, layout.StepParams{}), Counters: scratchOf(t, junkCounters(nil)),
		Tallies: update(t, start, exactly(want...)), DispatchArgs: argsOf(t, nil),
		Push: shaders.BeginPush{NTallies: uint32(n)}}, vk.Groups(groups))
	t.run()
}

// argsOf binds dispatch arguments, and wants so many workgroups of some of them.
func argsOf(t *trial, need counts) vk.Slice[[3]uint32] {
	return out[[3]uint32](t, layout.NArgs, func(b *binding) {
		for slot, n := range need {
			checkGrid(slot, b.end.([][3]uint32)[slot], n)
		}
	})
}

// unitGrids are the workgroups of a unit of n splats and a number of tiles.
func unitGrids(n, tiles uint32) counts {
	need := counts{}
	for slot := range layout.NArgs {
		need[slot] = 0
	}
	need[layout.ArgsSortSplats], need[layout.ArgsScanSplats] = groups(n, layout.SortBlock), groups(n, layout.ScanBlock)
	need[layout.ArgsSplats], need[layout.ArgsTiles] = groups(n, layout.Group), tiles
	if tiles > 0 {
		need[layout.ArgsTileOffsets] = groups(tiles+1, layout.OrderTiles)
	}
	return need
}

func groups(n, block uint32) uint32 { return uint32((uint64(n) + uint64(block) - 1) / uint64(block)) }

func checkGrid(slot int, a [3]uint32, n uint32) {
	total := uint64(a[0]) * uint64(a[1]) * uint64(a[2])
	enough := total == uint64(n)
	if n > math.MaxUint16 {
		enough = total >= uint64(n) && total < uint64(n)+math.MaxUint16
	}
	if !enough || max(a[0], a[1], a[2]) > math.MaxUint16 {
		failf("binding dispatch_args: [%d]: got %v, want %d workgroups", slot, a, n)
	}
}

func finishCases() []Case {
	sizes := [][2]uint32{{1, 1}, {16, 16}, {255 * 16, 16}, {256*16 - 3, 5}, {257 * 16, 1}, {40 * 16, 33}}
	one := func(f finishing) func(t *trial) {
		return over(sizes, func(t *trial, s [2]uint32) { checkFinish(t, s[0], s[1], f) })
	}
	return casesOf("finish", table{{"loss", one(finishing{loss: true})}, {"loss, windows beyond the border",
		one(finishing{loss: true, same: true})}, {"no loss", one(finishing{})}, {"alpha loss without mask",
		one(finishing{loss: true, counted: true})}, {"mask and alpha loss", one(finishing{loss: true, counted: true,
		masked: true, same: true})}, {"outliers", one(finishing{loss: true, counted: true, masked: true,
		robust: true})}, {"mask that leaves nothing", one(finishing{loss: true, counted: true, masked: true,
		empty: true})}})
}

// finishing is how a unit ends: whether it has a loss, counts what counts, has a mask, which is robust training's and
// not the photo's, and whether that leaves nothing.
type finishing struct{ loss, same, counted, masked, robust, empty bool }

// tallies makes what loss reports of each tile, and its sums: pixels, windows, alpha.
func (f finishing) tallies(t *trial, v *layout.View) (counted [][3]float32, sum [3]float64) {
	counted = make([][3]float32, v.TileWidth*v.TileHeight)
	for i := range counted {
		if f.masked && !f.empty {
			counted[i] = [3]float32{float32(t.IntN(257)), float32(t.IntN(200)), 100 * t.Float32()}
		}
		for k := range sum {
			sum[k] += float64(counted[i][k])
		}
	}
	switch {
	case !f.counted:
		sum = [3]float64{float64(v.Width * v.Height)}
	case !f.masked:
		sum[0], counted[0][2] = float64(v.Width*v.Height), 50
		sum[2] = 50
		counted[0][0] = float32(sum[0])
	}
	return counted, sum
}

func checkFinish(t *trial, width, height uint32, f finishing) {
	p := layout.StepParams{Unit: 11, Step: 12, SsimLambda: 0.2, AlphaLoss: 0.3, SsimSame: layout.Bit(f.same)}
	p.View = layout.View{Width: width, Height: height, TileWidth: groups(width, 16), TileHeight: groups(height, 16)}
	if f.masked && !f.robust {
		p.PhotoFlags = layout.PhotoMasked
	}
	c := make([]uint32, layout.NCounters)
	for i := range c {
		c[i] = uint32(100 + i)
	}
	c[layout.NNew], c[layout.NNewAllowed] = 50, 30
	partials := make([][3]float32, p.View.TileWidth*p.View.TileHeight)
	var sum [3]float64
	for i := range partials {
		for k := range sum {
			if partials[i][k] = t.Float32() * 200; f.empty {
				partials[i][k] = 0
			}
			if f.loss {
				sum[k] += float64(partials[i][k])
			}
		}
	}
	counted, tally := f.tallies(t, &p.View)
	push := shaders.FinishPush{HasLoss: layout.Bit(f.loss), HasCounted: layout.Bit(f.counted)}
	if f.counted && f.robust {
		push.HasCounted = 2
	}
	t.dispatch(&shaders.Finish{Params: in(t, p), Counters: in(t, c...), Partials: in(t, partials...),
		Counted: in(t, counted...), Push: push, Report: out[layout.Report](t, 1, func(b *binding) {
			checkReport(b.end.([]layout.Report)[0], c, &p, f.masked, sum, tally)
		})}, vk.Groups(1))
	t.run()
}

// checkReport compares a report with the counters, the sums of |x - y|, (x - y)^2 and SSIM, and the tally: pixels and
// windows that count, alpha.
func checkReport(got layout.Report, c []uint32, p *layout.StepParams, masked bool, sum, tally [3]float64) {
	all := float64(p.View.Width) * float64(p.View.Height)
	w, h := float64(p.View.Width), float64(p.View.Height)
	if p.SsimSame == 0 {
		w, h = max(0, w-10), max(0, h-10)
	}
	terms, pixels := max(1, 3*w*h), max(1, tally[0])
	l1, mse, ssim, alpha := sum[0]/(3*pixels), sum[1]/(3*pixels), sum[2]/terms, tally[2]/pixels
	loss := 0.8*l1 + 0.2*(1-ssim) + 0.3*tally[2]/all
	if masked {
		ssim = sum[2] / max(1, 3*tally[1])
		loss = 0.8*sum[0]/(3*all) + 0.2*(3*tally[1]-sum[2])/terms + 0.3*tally[2]/all
	}
	// A tree of float additions: at most log2(tiles) roundings on the way.
	largest := 3e-6 * (sum[0]/all + 3*tally[1]/terms + sum[2]/terms) // parts of the loss of which one is subtracted
	near("report", []float32{got.L1, got.Mse, got.Ssim, got.AlphaL1, got.Loss},
		[]float64{l1, mse, ssim, alpha, loss}, 1e-6+largest, 3e-6)
	same("report", []layout.Report{got}, []layout.Report{{Unit: 11, Step: 12, Failed: c[layout.Failed],
		FailedUnit: c[layout.FailedUnit], Needed: c[layout.Needed], NSplats: c[layout.NSplats],
		NVisible: c[layout.NVisible], NIsects: c[layout.NIsectsMax], MaxSplatsHit: 20, Loss: got.Loss, L1: got.L1,
		Mse: got.Mse, Ssim: got.Ssim, AlphaL1: got.AlphaL1, NCounted: uint32(tally[0])}})
}
