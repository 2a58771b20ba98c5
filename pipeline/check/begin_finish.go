package check

import (
	"fmt"
	"math"

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
		newCase("begin", "tiles", func(t *trial) error {
			return each([][2]uint32{{1, 1}, {255, 1}, {16, 16}, {257, 1}, {300, 400}}, func(s [2]uint32) error {
				return checkBegin(t, 7, 0, s[0], s[1])
			})
		}),
		newCase("begin", "after a failure nothing runs", func(t *trial) error {
			return each([]uint32{layout.FailedIsects, layout.FailedSplats, 3}, func(failed uint32) error { return checkBegin(t, 1000, failed, 3, 5) })
		}),
	}
}

func checkBegin(t *trial, n, failed, tileWidth, tileHeight uint32) error {
	l := t.list()
	start := junkCounters(map[int]uint32{layout.NSplats: n, layout.Failed: failed, layout.FailedUnit: 9, layout.Needed: 77})
	p := layout.StepParams{View: layout.View{TileWidth: tileWidth, TileHeight: tileHeight}}
	counters := inout(l, "counters", start)
	args := output[[3]uint32](l, "dispatch_args", layout.NArgs)
	l.r.Dispatch(&shaders.Begin{Params: input(l, "params", []layout.StepParams{p}), Counters: counters.Slice, DispatchArgs: args.Slice}, vk.Groups(1))
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
	offsets := uint32(0)
	if tiles > 0 {
		offsets = groups(tiles+1, layout.Group)
	}
	need := map[int]uint32{
		layout.ArgsSortSplats: groups(n, layout.SortBlock), layout.ArgsScanSplats: groups(n, layout.ScanBlock), layout.ArgsSplats: groups(n, layout.Group),
		layout.ArgsTiles: tiles, layout.ArgsTileOffsets: offsets,
	}
	for slot, a := range args.got {
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
	one := func(hasLoss, same bool) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(s [2]uint32) error { return checkFinish(t, s[0], s[1], hasLoss, same) })
		}
	}
	return []Case{
		newCase("finish", "loss", one(true, false)), newCase("finish", "loss, windows beyond the border", one(true, true)),
		newCase("finish", "no loss", one(false, false)),
	}
}

func checkFinish(t *trial, width, height uint32, hasLoss, same bool) error {
	p := layout.StepParams{Unit: 11, Step: 12, SsimLambda: 0.2}
	p.View = layout.View{Width: width, Height: height, TileWidth: groups(width, 16), TileHeight: groups(height, 16)}
	if same {
		p.SsimSame = 1
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
			if hasLoss {
				sum[k] += float64(partials[i][k])
			}
		}
	}
	l := t.list()
	report := output[layout.Report](l, "report", 1)
	pass := &shaders.Finish{
		Params: input(l, "params", []layout.StepParams{p}), Counters: input(l, "counters", c), Partials: input(l, "partials", partials), Report: report.Slice,
	}
	if hasLoss {
		pass.Push.HasLoss = 1
	}
	l.r.Dispatch(pass, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	return checkReport(report.got[0], c, &p, sum)
}

// checkReport compares a report with the counters and the sums of |x - y|, (x - y)^2 and SSIM.
func checkReport(got layout.Report, c []uint32, p *layout.StepParams, sum [3]float64) error {
	values := 3 * float64(p.View.Width) * float64(p.View.Height)
	w, h := float64(p.View.Width), float64(p.View.Height)
	if p.SsimSame == 0 {
		w, h = max(0, w-10), max(0, h-10)
	}
	l1, mse, ssim := sum[0]/values, sum[1]/values, sum[2]/max(1, 3*w*h)
	loss := 0.8*l1 + 0.2*(1-ssim)
	// A tree of float additions: at most log2(tiles) roundings on the way.
	if err := closeTo("report", []float32{got.L1, got.Mse, got.Ssim, got.Loss}, []float64{l1, mse, ssim, loss}, 1e-6, 3e-6); err != nil {
		return err
	}
	want := layout.Report{
		Unit: 11, Step: 12, Failed: c[layout.Failed], FailedUnit: c[layout.FailedUnit], Needed: c[layout.Needed], NSplats: c[layout.NSplats],
		NVisible: c[layout.NVisible], NIsects: c[layout.NIsectsMax], MaxSplatsHit: 20,
		Loss: got.Loss, L1: got.L1, Mse: got.Mse, Ssim: got.Ssim,
	}
	return equal("report", []layout.Report{got}, []layout.Report{want})
}
