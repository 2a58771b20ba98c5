package check

import (
	"fmt"
	"math"
	"slices"

	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// junkCounters returns counters of an earlier unit.
func junkCounters(set map[int]uint32) []uint32 {
	c := make([]uint32, layout.NCounters)
	for i := range c {
		c[i] = 0x51515151
	}
	c[layout.Failed], c[layout.FailedUnit], c[layout.Needed] = 0, 0, 0
	for slot, v := range set {
		c[slot] = v
	}
	return c
}

func beginCases() []Case {
	sizes := []uint32{0, 1, 255, 256, 257, 2047, 2048, 2049, 1<<16*256 - 1, 1<<16*256 + 1, 1<<27 + 1, 1<<30 + 7}
	return []Case{
		newCase("begin", "sizes", func(t *trial) error {
			return each(sizes, func(n uint32) error { return checkBegin(t, n, 0, 3, 5) })
		}),
		newCase("begin", "tallies", func(t *trial) error {
			return each([]int{1, 255, 256, 257, 511, 512, 513, 10_000}, func(n int) error {
				return first(clearTallies(t, n, 1), clearTallies(t, n, 2), clearTallies(t, n, 5))
			})
		}),
		newCase("begin", "tiles", func(t *trial) error {
			return each([][2]uint32{{1, 1}, {255, 1}, {16, 16}, {257, 1}, {300, 400}}, func(s [2]uint32) error {
				return checkBegin(t, 7, 0, s[0], s[1])
			})
		}),
		newCase("begin", "after a failure nothing runs", func(t *trial) error {
			return each([]uint32{layout.FailedIsects, layout.FailedSplats, 3},
				func(failed uint32) error { return checkBegin(t, 1000, failed, 3, 5) })
		}),
	}
}

func checkBegin(t *trial, n, failed, tileWidth, tileHeight uint32) error {
	l := t.list()
	start := junkCounters(map[int]uint32{layout.NSplats: n, layout.Failed: failed, layout.FailedUnit: 9,
		layout.Needed: 77})
	p := layout.StepParams{View: layout.View{TileWidth: tileWidth, TileHeight: tileHeight}}
	counters := inout(l, "counters", start)
	args := output[[3]uint32](l, "dispatch_args", layout.NArgs)
	l.r.Dispatch(&shaders.Begin{Params: input(l, "params", []layout.StepParams{p}), Counters: counters.Slice,
		DispatchArgs: args.Slice, Tallies: counters.Slice.At(0, 0)}, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	want := append([]uint32(nil), start...)
	clear(want[layout.NActive:])
	tiles := tileWidth * tileHeight
	if failed != 0 {
		n, tiles = 0, 0
	}
	want[layout.NActive] = n
	if err := equal("counters", counters.got, want); err != nil {
		return err
	}
	return checkArgs(args.got, n, tiles)
}

// clearTallies clears n words by so many workgroups and requires that the words after them are left alone.
func clearTallies(t *trial, n, groups int) error {
	l := t.list()
	want := make([]uint32, n+3)
	for i := range want {
		want[i] = 7
	}
	tallies := inout(l, "tallies", slices.Clone(want))
	l.r.Dispatch(&shaders.Begin{Params: input(l, "params", make([]layout.StepParams, 1)),
		Counters: inout(l, "counters", junkCounters(nil)).Slice, Tallies: tallies.Slice,
		DispatchArgs: output[[3]uint32](l, "dispatch_args", layout.NArgs).Slice,
		Push:         shaders.BeginPush{NTallies: uint32(n)}}, vk.Groups(groups))
	if err := l.run(); err != nil {
		return err
	}
	clear(want[:n])
	return equal("tallies", tallies.got, want)
}

// checkArgs requires the dispatch arguments of a unit of n splats and so many tiles.
func checkArgs(got [][3]uint32, n, tiles uint32) error {
	offsets := uint32(0)
	if tiles > 0 {
		offsets = groups(tiles+1, layout.OrderTiles)
	}
	need := map[int]uint32{
		layout.ArgsSortSplats: groups(n, layout.SortBlock), layout.ArgsScanSplats: groups(n, layout.ScanBlock),
		layout.ArgsSplats: groups(n, layout.Group),
		layout.ArgsTiles:  tiles, layout.ArgsTileOffsets: offsets,
	}
	for slot, a := range got {
		if err := checkGrid(slot, a, need[slot]); err != nil {
			return err
		}
	}
	return nil
}

func groups(n, block uint32) uint32 { return uint32((uint64(n) + uint64(block) - 1) / uint64(block)) }

// checkGrid requires a grid of n workgroups, or a few more where they do not fit in one row of 65535.
func checkGrid(slot int, a [3]uint32, n uint32) error {
	total := uint64(a[0]) * uint64(a[1]) * uint64(a[2])
	enough := total == uint64(n)
	if n > math.MaxUint16 {
		enough = total >= uint64(n) && total < uint64(n)+math.MaxUint16
	}
	if !enough || max(a[0], a[1], a[2]) > math.MaxUint16 {
		return fmt.Errorf("binding dispatch_args: [%d]: got %v, want %d workgroups", slot, a, n)
	}
	return nil
}

func finishCases() []Case {
	sizes := [][2]uint32{{1, 1}, {16, 16}, {255 * 16, 16}, {256*16 - 3, 5}, {257 * 16, 1}, {40 * 16, 33}}
	one := func(f finishing) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]uint32) error { return checkFinish(t, s[0], s[1], f) })
		}
	}
	return []Case{
		newCase("finish", "loss", one(finishing{loss: true})),
		newCase("finish", "loss, windows beyond the border", one(finishing{loss: true, same: true})),
		newCase("finish", "no loss", one(finishing{})),
		newCase("finish", "alpha loss without mask", one(finishing{loss: true, counted: true})),
		newCase("finish", "mask and alpha loss", one(finishing{loss: true, counted: true, masked: true, same: true})),
		newCase("finish", "outliers", one(finishing{loss: true, counted: true, masked: true, robust: true})),
		newCase("finish", "mask that leaves nothing",
			one(finishing{loss: true, counted: true, masked: true, empty: true})),
	}
}

// finishing is how a unit ends: whether it has a loss, counts what counts, has a mask, which is robust training's and
// not the photo's, and whether that leaves nothing.
type finishing struct{ loss, same, counted, masked, robust, empty bool }

// tallies makes what loss tells of each tile, and its sums: pixels, windows, alpha.
func (t *trial) tallies(v *layout.View, f finishing) (counted [][3]float32, sum [3]float64) {
	counted = make([][3]float32, v.TileWidth*v.TileHeight)
	for i := range counted {
		if f.masked && !f.empty {
			counted[i] = [3]float32{float32(t.IntN(257)), float32(t.IntN(200)), 100 * t.Float32()}
		}
		for k := range sum {
			sum[k] += float64(counted[i][k])
		}
	}
	if f.counted && !f.masked {
		sum[0], counted[0][2] = float64(v.Width*v.Height), 50
		sum[2] = 50
		counted[0][0] = float32(sum[0])
	}
	return counted, sum
}

func checkFinish(t *trial, width, height uint32, f finishing) error {
	p := layout.StepParams{Unit: 11, Step: 12, SsimLambda: 0.2, AlphaLoss: 0.3}
	p.View = layout.View{Width: width, Height: height, TileWidth: groups(width, 16), TileHeight: groups(height, 16)}
	if f.same {
		p.SsimSame = 1
	}
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
			partials[i][k] = t.Float32() * 200
			if f.empty {
				partials[i][k] = 0
			}
			if f.loss {
				sum[k] += float64(partials[i][k])
			}
		}
	}
	counted, tally := t.tallies(&p.View, f)
	l := t.list()
	report := output[layout.Report](l, "report", 1)
	pass := &shaders.Finish{
		Params: input(l, "params", []layout.StepParams{p}), Counters: input(l, "counters", c),
		Partials: input(l, "partials", partials),
		Counted:  input(l, "counted", counted), Report: report.Slice,
	}
	if f.loss {
		pass.Push.HasLoss = 1
	}
	if f.counted {
		pass.Push.HasCounted = 1
		if f.robust {
			pass.Push.HasCounted = 2
		}
	} else {
		tally = [3]float64{float64(width * height)}
	}
	l.r.Dispatch(pass, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	return checkReport(report.got[0], c, &p, f.masked, sum, tally)
}

// checkReport compares a report with the counters, the sums of |x - y|, (x - y)^2 and SSIM, and the tally: pixels and
// windows that count, alpha.
func checkReport(got layout.Report, c []uint32, p *layout.StepParams, masked bool, sum,
	tally [3]float64) error {
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
	want64 := []float64{l1, mse, ssim, alpha, loss}
	largest := 3e-6 * (sum[0]/all + 3*tally[1]/terms + sum[2]/terms) // parts of the loss of which one is subtracted
	if err := closeTo("report", []float32{got.L1, got.Mse, got.Ssim, got.AlphaL1, got.Loss}, want64, 1e-6+largest,
		3e-6); err != nil {
		return err
	}
	want := layout.Report{
		Unit: 11, Step: 12, Failed: c[layout.Failed], FailedUnit: c[layout.FailedUnit], Needed: c[layout.Needed],
		NSplats:  c[layout.NSplats],
		NVisible: c[layout.NVisible], NIsects: c[layout.NIsectsMax], MaxSplatsHit: 20,
		Loss: got.Loss, L1: got.L1, Mse: got.Mse, Ssim: got.Ssim, AlphaL1: got.AlphaL1, NCounted: uint32(tally[0]),
	}
	return equal("report", []layout.Report{got}, []layout.Report{want})
}
