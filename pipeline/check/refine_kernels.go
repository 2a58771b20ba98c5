package check

import (
	"fmt"
	"math"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func refineKernelCases() []Case {
	return []Case{
		newCase("refine_classify", "sizes", func(t *trial) error {
			return each([]int{0, 1, refineChunk - 1, refineChunk, refineChunk + 1, 255, 256, 257, 700},
				func(n int) error {
					m := t.refinable(n, mix{keep: 1, duplicate: 1, split: 1, prune: 1})
					return checkClassify(t, m, refinement{}.config(), func(int, uint32) error { return nil }, true)
				})
		}),
		newCase("refine_classify", "poison", checkClassifyPoison),
		newCase("refine_classify", "values on thresholds", checkClassifyThresholds),
		newCase("refine_holes", "sizes", func(t *trial) error {
			return each([]int{0, 1, 255, 256, 257, 1000}, func(n int) error {
				return each([]int{1, 2, 4}, func(oneIn int) error { return checkHoles(t, n, oneIn) })
			})
		}),
		newCase("refine_plan", "table of counts", checkPlan),
		newCase("refine_commit", "counts", func(t *trial) error {
			return first(
				checkCommit(t, map[int]uint32{layout.NSplats: 10, layout.NActive: 10, layout.NAfter: 25}, 25),
				checkCommit(t, map[int]uint32{layout.NSplats: 10, layout.NActive: 10, layout.NAfter: 0}, 0),
				checkCommit(t, map[int]uint32{layout.NSplats: 10, layout.NActive: 0, layout.NAfter: 0}, 10),
				checkCommit(t,
					map[int]uint32{layout.NSplats: 10, layout.NActive: 10, layout.NAfter: 25,
						layout.Failed: layout.FailedSplats}, 10),
			)
		}),
	}
}

// checkClassify runs refine_classify alone. Every action must agree with the reference's if strict, and judge decides
// about each.
func checkClassify(t *trial, m *ref.Model[float32], c ref.RefineConfig[float32], judge func(i int, action uint32) error,
	strict bool) error {
	l := t.list()
	chunks := max(1, blocksOf(m.N, refineChunk))
	d := l.upload(m, refineChunk, chunks)
	total := chunks * refineChunk
	actions, fresh, holes := output[uint32](l, "actions", total), output[uint32](l, "new_offset", total),
		output[uint32](l, "hole_offset", total)
	grow, prune := output[uint32](l, "grow_keys", total), output[uint32](l, "prune_keys", total)
	params := input(l, "params", []layout.StepParams{refineParams(c, total)})
	start := junkCounters(map[int]uint32{layout.NActive: uint32(m.N), layout.NHoles: 0})
	counters := inout(l, "counters", start)
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.RefineClassify{
			Params: params, Counters: counters.Slice, Chunk: chunk.Slice, Actions: actions.Slice,
			NewOffset: fresh.Slice, HoleOffset: holes.Slice,
			GrowKeys: grow.Slice, PruneKeys: prune.Slice,
			Push: shaders.RefineClassifyPush{FirstId: uint32(i * refineChunk), ChunkSplats: refineChunk,
				NState: uint32(d.stats)},
		}, vk.Items(refineChunk, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	a, err1 := actions.written(m.N)
	f, err2 := fresh.written(m.N)
	h, err3 := holes.written(m.N)
	g, err4 := grow.written(m.N)
	k, err5 := prune.written(m.N)
	if err := first(err1, err2, err3, err4, err5, d.untouched()); err != nil {
		return err
	}
	want := ref.Classify(m, c)
	gone := uint32(0)
	for i, action := range a {
		if strict && action != uint32(want.Actions[i]) {
			return fmt.Errorf("binding actions: [%d]: got %d, want %d", i, action, want.Actions[i])
		}
		grows, goes := action == layout.ActionDuplicate || action == layout.ActionSplit, action == layout.ActionPrune
		if goes {
			gone++
		}
		if action > layout.ActionPrune || f[i] != 0 || (h[i] == 1) != goes || h[i] > 1 ||
			(g[i] != layout.Culled) != grows || (k[i] == layout.Culled) != goes {
			return fmt.Errorf("binding new_offset, hole_offset, grow_keys, prune_keys: [%d]: got %d, %d, %#x, %#x for "+
				"action %d", i, f[i], h[i], g[i], k[i], action)
		}
		if err := judge(i, action); err != nil {
			return err
		}
	}
	return equal("counters", counters.got, with(start, layout.NHoles, gone))
}

// checkClassifyPoison puts each bad number into every row that decides: what is not a number, or infinitely large,
// goes.
func checkClassifyPoison(t *trial) error {
	rows := ref.ParamRows(1)
	// Every parameter up to sh0, and the statistics.
	decide := append(indices(layout.RowSh+3), 3*rows+layout.StatGrad2d, 3*rows+layout.StatCount)
	return each([]bool{false, true}, func(anyScale bool) error {
		m := t.refinable(len(decide)*len(bad), mix{keep: 1, duplicate: 1, split: 1})
		for i := range m.N {
			*modelAt(m, decide[i/len(bad)], i) = bad[i%len(bad)]
		}
		c := refinement{anyScale: anyScale}.config()
		want := ref.Classify(m, c)
		return checkClassify(t, m, c, func(i int, action uint32) error {
			row, x := decide[i/len(bad)], bad[i%len(bad)]
			if row >= 3*rows && (isNaN(x) || isInf(x)) {
				return nil // statistics that are no numbers: any action will do
			}
			if action != uint32(want.Actions[i]) {
				return fmt.Errorf("binding actions: [%d]: got %d, want %d for %g in row %d", i, action, want.Actions[i],
					x, row)
			}
			return nil
		}, false)
	})
}

// checkClassifyThresholds lets each quantity be a threshold or a neighbour of it: the action must be one that a
// rounding error away is right.
func checkClassifyThresholds(t *trial) error {
	c := refinement{}.config()
	m := t.refinable(4*9, mix{keep: 1, split: 1})
	near := func(x float64, k int) float32 { return float32(x * (1 + 1e-7*float64(k-4))) }
	for i := range m.N {
		switch k := i % 9; i / 9 {
		case 0:
			m.Grad2D[i], m.Count[i] = near(growGrad2D*8, k), 8
		case 1:
			m.LogScales[3*i], m.LogScales[3*i+1], m.LogScales[3*i+2] = near(math.Log(growScale), k), -9, -9
		case 2:
			m.LogitOpacities[i] = near(math.Log(pruneOpacity/(1-pruneOpacity)), k)
		case 3:
			m.LogScales[3*i] = near(math.Log(pruneScale), k)
		}
	}
	low, high := c, c
	for _, nudge := range []struct {
		c *ref.RefineConfig[float32]
		f float32
	}{{&low, 1 - 1e-4}, {&high, 1 + 1e-4}} {
		nudge.c.GrowGrad2D *= nudge.f
		nudge.c.GrowScale *= nudge.f
		nudge.c.PruneOpacity *= nudge.f
		nudge.c.PruneScale *= nudge.f
	}
	a, b := ref.Classify(m, low), ref.Classify(m, high)
	return checkClassify(t, m, c, func(i int, action uint32) error {
		if action != uint32(a.Actions[i]) && action != uint32(b.Actions[i]) {
			return fmt.Errorf("binding actions: [%d]: got %d, want %d or %d", i, action, a.Actions[i], b.Actions[i])
		}
		return nil
	}, false)
}

// checkHoles prunes one in so many splats.
func checkHoles(t *trial, n, oneIn int) error {
	l := t.list()
	actions, flags := t.uints(n, 3), make([]uint32, n)
	var want []uint32
	for i := range actions {
		if t.IntN(oneIn) == 0 {
			actions[i], flags[i] = layout.ActionPrune, 1
			want = append(want, uint32(i))
		}
	}
	offsets, _ := ref.Scan(flags)
	list := output[uint32](l, "hole_list", n)
	after := t.IntN(n + 2) // fewer than n, or not
	start := junkCounters(map[int]uint32{layout.NActive: uint32(n), layout.NAfter: uint32(after),
		layout.NHoles: uint32(len(want))})
	counters := inout(l, "counters", start)
	l.r.Dispatch(&shaders.RefineHoles{
		Counters: counters.Slice, Actions: input(l, "actions", actions), HoleOffset: input(l, "hole_offset", offsets),
		HoleList: list.Slice,
	}, vk.Items(n+256, 256))
	if err := l.run(); err != nil {
		return err
	}
	below := uint32(0)
	for _, id := range want {
		if int(id) < after {
			below++
		}
	}
	wantCounters := start
	if n > 0 {
		wantCounters = with(start, layout.NFreeHoles, below)
	}
	got, err := list.written(len(want))
	return first(err, equal("hole_list", got, want), equal("counters", counters.got, wantCounters))
}

// checkPlan runs refine_plan on a table of counts.
func checkPlan(t *trial) error {
	for _, p := range []struct {
		n, holes, ranked, target, ceiling, capacity uint32
		failed                                      uint32
		wanted, after, added                        uint32 // want
	}{
		{100, 10, 20, 0, 1000, 1000, 0, 20, 110, 20},
		{100, 10, 20, 0, 105, 1000, 0, 20, 105, 15},
		{100, 10, 20, 0, 90, 1000, 0, 20, 90, 0},
		{100, 10, 20, 0, 50, 1000, 0, 20, 90, 0}, // a ceiling below what lives prunes nothing more
		{100, 10, 20, 0, 1000, 110, 0, 20, 110, 20},
		{100, 10, 20, 0, 1000, 109, 0, 20, 110, 20},
		{100, 10, 20, 0, 1000, 109, layout.FailedIsects, 20, 110, 20},
		{100, 100, 0, 0, 1000, 1000, 0, 0, 0, 0},
		{0, 0, 0, 0, 1000, 1000, 0, 0, 0, 0},
		{100, 0, 0, 0, 1000, 100, 0, 0, 100, 0},
		{100, 10, 90, 95, 1000, 1000, 0, 5, 95, 5},
		{100, 10, 90, 200, 1000, 1000, 0, 90, 180, 90},
		{100, 10, 90, 200, 120, 1000, 0, 30, 120, 30},
		{100, 10, 90, 200, 1000, 150, 0, 90, 180, 90},
		{100, 10, 90, 90, 1000, 1000, 0, 0, 90, 0},
		{100, 10, 90, 40, 1000, 1000, 0, 0, 40, 0}, // a target below what lives does
	} {
		start := junkCounters(map[int]uint32{layout.NActive: p.n, layout.NVisible: p.ranked, layout.NHoles: p.holes,
			layout.Failed: p.failed})
		want := append([]uint32(nil), start...)
		if p.after > p.capacity {
			if p.failed == 0 {
				want[layout.FailedUnit] = 17
			}
			want[layout.Failed] |= layout.FailedSplats
			want[layout.Needed] = p.after
		} else {
			want[layout.NNew], want[layout.NNewAllowed], want[layout.NAfter] = p.wanted, p.added, p.after
		}
		l := t.list()
		c := ref.RefineConfig[float32]{Cap: int(p.ceiling), Target: int(p.target)}
		counters := inout(l, "counters", start)
		l.r.Dispatch(&shaders.RefinePlan{
			Params: input(l, "params", []layout.StepParams{refineParams(c, int(p.capacity))}), Counters: counters.Slice,
		}, vk.Groups(1))
		if err := l.run(); err != nil {
			return err
		}
		if err := equal("counters", counters.got, want); err != nil {
			return fmt.Errorf("%+v: %w", p, err)
		}
	}
	return nil
}

func checkCommit(t *trial, set map[int]uint32, splats uint32) error {
	l := t.list()
	start := junkCounters(set)
	counters := inout(l, "counters", start)
	l.r.Dispatch(&shaders.RefineCommit{Counters: counters.Slice}, vk.Groups(1))
	if err := l.run(); err != nil {
		return err
	}
	return equal("counters", counters.got, with(start, layout.NSplats, splats))
}
