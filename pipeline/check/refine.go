package check

import (
	"maps"
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// refineChunk is the chunk size of refinements: a few hundred splats fill several.
const refineChunk = 130

var allFates = mix{keep: 4, duplicate: 2, split: 2, prune: 3}

func (r refinement) check(t *trial) {
	r.chunks = 8
	checkRefine(t, t.refinable(400, allFates), r)
}

func refineCases() []Case {
	run := func(m mix, sizes ...int) func(t *trial) {
		return over(sizes, func(t *trial, n int) {
			checkRefine(t, t.refinable(n, m), refinement{ceiling: math.MaxInt32, chunks: 8})
		})
	}
	return slices.Concat(casesOf("refine_place", table{
		{"sizes and several chunks",
			run(allFates, 0, 1, 2, 3, refineChunk-1, refineChunk, refineChunk+1, 255, 256, 257, 500)},
		{"more holes than new splats", run(mix{keep: 4, duplicate: 1, split: 1, prune: 6}, 500)},
		{"more new splats than holes", run(mix{keep: 2, duplicate: 4, split: 4, prune: 1}, 500)},
		{"all are pruned", run(mix{prune: 1}, 1, 300)},
		{"all are duplicated", run(mix{duplicate: 1}, 1, 300)},
		{"all but one pruned", over([]int{0, 150, 299}, func(t *trial, kept int) {
			m := t.refinable(300, mix{prune: 1})
			*m.Params.At(layout.RowLogitOpacities, kept), m.Grad2D[kept], m.LogScales[3*kept] = 3, 0, -6
			m.LogScales[3*kept+1], m.LogScales[3*kept+2] = -7, -7
			checkRefine(t, m, refinement{ceiling: 1000, chunks: 3})
		})},
		{"the ceiling holds growth back", over([]int{0, 1, 300, 399, 400, 410, 450},
			func(t *trial, ceiling int) { refinement{ceiling: ceiling}.check(t) })},
		{"capacity just enough", func(t *trial) { checkCapacity(t, 0) }},
		{"revised opacities", over([]float32{-5, -1, 0, 3, 20, 90}, func(t *trial, logit float32) {
			m := t.refinable(300, allFates)
			for i := range m.N {
				if m.LogitOpacities[i] > -5 {
					m.LogitOpacities[i] = logit
				}
			}
			checkRefine(t, m, refinement{ceiling: 400, chunks: 4, revised: true})
		})},
	}), []Case{
		mixedCase("refine_place", "in mixed precision", run(allFates, 1, refineChunk, 500)),
		newCase("refine_update", "all split", run(mix{split: 1}, 1, 300)),
		newCase("refine_update", "nothing happens but that statistics start anew", run(mix{keep: 1}, 1, 300)),
		newCase("refine_update", "no pruning by scale", refinement{ceiling: 1000, anyScale: true}.check),
		newCase("refine_plan", "capacity one short: nothing changes", func(t *trial) { checkCapacity(t, -1) }),
		newCase("refine_commit", "after a failure nothing changes",
			refinement{ceiling: 1000, failedBefore: true}.check),
	})
}

// rankedCases are those in which who grows or goes depends on all splats.
func rankedCases() []Case {
	return []Case{
		newCase("refine_select", "a target: growth, pruning, neither",
			over([]int{1, 150, 299, 300, 301, 330, 450, 5000},
				func(t *trial, target int) { refinement{ceiling: 1000, target: target}.check(t) })),
		newCase("refine_select", "equals grow and go by id", over([]int{0, 200, 350}, func(t *trial, target int) {
			m := t.refinable(300, mix{duplicate: 1})
			for i := range m.N {
				m.Grad2D[i], m.Count[i], m.LogitOpacities[i] = 1, 1, float32(i%2)
			}
			checkRefine(t, m, refinement{ceiling: 350, chunks: 4, target: target})
		})),
		newCase("refine_rank", "a target above the ceiling, and splats never seen", func(t *trial) {
			m := t.refinable(400, allFates)
			for i := range m.N {
				if t.IntN(2) == 0 {
					m.Grad2D[i], m.Count[i] = 0, 0
				}
			}
			checkRefine(t, m, refinement{ceiling: 410, chunks: 8, target: 700})
		}),
	}
}

// mix is in which shares splats are meant for each action.
type mix struct{ keep, duplicate, split, prune int }

// Thresholds of the checks. Splats keep a distance from them, so that rounding decides nothing.
const (
	growGrad2D, growScale, pruneOpacity, pruneScale = 2e-4, 0.01, 0.005, 0.1
)

// refinable returns n trained splats of SH degree 1 with the given mix of fates.
func (t source) refinable(n int, m mix) *ref.Model[float32] {
	model := ref.NewModel(t.splats(n, 1))
	for i := range n {
		for r := range ref.ParamRows(1) {
			*model.M.At(r, i), *model.V.At(r, i) = float32(t.NormFloat64()), t.Float32()
		}
		grad, scale, logit := 0.5*growGrad2D, 0.3*growScale, t.Float64()*6-4
		switch k := t.IntN(m.keep + m.duplicate + m.split + m.prune); {
		case k < m.keep:
			scale = growScale * math.Exp(2*t.NormFloat64())
			scale = min(scale, 0.9*pruneScale)
		case k < m.keep+m.duplicate:
			grad = growGrad2D * (1.1 + 5*t.Float64())
		case k < m.keep+m.duplicate+m.split:
			grad, scale = growGrad2D*(1.1+5*t.Float64()), growScale*(1.1+10*t.Float64())
		case t.IntN(3) == 0:
			scale = pruneScale * 2
		default:
			logit = -6 - 3*t.Float64()
		}
		// divisions by powers of two are exact, so scores rank as in the reference
		count := float64(int(1) << t.IntN(7))
		model.Grad2D[i], model.Count[i] = float32(grad*count), float32(count)
		model.LogitOpacities[i] = float32(logit)
		largest := t.IntN(3)
		for k := range 3 {
			model.LogScales[3*i+k] = float32(math.Log(scale) - 2*t.Float64())
		}
		model.LogScales[3*i+largest] = float32(math.Log(scale))
	}
	return model
}

type refinement struct {
	ceiling      int
	chunks       int
	capacity     int  // 0: what the chunks hold
	failedBefore bool // an earlier unit has failed
	anyScale     bool // splats are not pruned for their scale
	target       int  // splats to end with; 0: none
	revised      bool // revised opacities
}

func (r refinement) config() ref.RefineConfig[float32] {
	c := ref.RefineConfig[float32]{GrowGrad2D: growGrad2D, GrowScale: growScale, PruneOpacity: pruneOpacity,
		PruneScale: pruneScale, Cap: r.ceiling, Seed: 0x123456789ABCDEF0, Step: 700}
	if r.anyScale {
		c.PruneScale = 0
	}
	c.Target, c.RevisedOpacity = r.target, r.revised
	return c
}

func refineParams(c ref.RefineConfig[float32], capacity int) layout.StepParams {
	return layout.StepParams{TargetSplats: uint32(c.Target), RevisedOpacity: layout.Bit(c.RevisedOpacity), Unit: 17,
		Step: c.Step, SeedLo: uint32(c.Seed), SeedHi: uint32(c.Seed >> 32), GrowGrad2d: c.GrowGrad2D,
		GrowScale: c.GrowScale, PruneOpacity: c.PruneOpacity, PruneScale: c.PruneScale, MaxSplats: uint32(c.Cap),
		SplatCapacity: uint32(capacity)}
}

// refined is what a refinement reads and writes beside the chunks.
type refined struct {
	params                                vk.Slice[layout.StepParams]
	counters, actions, fresh, holes, list vk.Slice[uint32]
	grow, prune                           vk.Slice[uint32] // keys
}

func newRefined(d *model, p layout.StepParams, start []uint32) *refined {
	next := func() vk.Slice[uint32] { return scratch[uint32](d.t, d.size*len(d.chunks)) }
	return &refined{params: in(d.t, p), counters: scratchOf(d.t, start), actions: next(), fresh: next(), holes: next(),
		list: next(), grow: next(), prune: next()}
}

func (r *refined) refine(d *model, n int) {
	t, args := d.t, argsOf(d.t, nil)
	size, rows, state, each := uint32(d.size), uint32(d.Stored), uint32(d.Stats), vk.Items(d.size, 256)
	r.classify(d)
	t.dispatch(&shaders.RefineRank{Params: r.params, Counters: r.counters, PruneKeys: r.prune, Keys: r.grow},
		vk.Items(n, 256))
	_, ranked := sortShapes(t.d)[0].radixSort(t, r.counters, args, r.grow, r.grow, d.size*len(d.chunks), 31, true)
	t.dispatch(&shaders.RefinePlan{Params: r.params, Counters: r.counters}, vk.Groups(1))
	t.dispatch(&shaders.RefineSelect{Params: r.params, Counters: r.counters, SplatFromRank: ranked, Actions: r.actions,
		NewOffset: r.fresh, HoleOffset: r.holes}, vk.Items(n, 256))
	t.scan(r.params, r.counters, r.fresh, args, n, layout.NActive, layout.NGrown, 0)
	t.scan(r.params, r.counters, r.holes, args, n, layout.NActive, layout.NHoles, 0)
	t.dispatch(&shaders.RefineHoles{Counters: r.counters, Actions: r.actions, HoleOffset: r.holes, HoleList: r.list},
		vk.Items(n, 256))
	for i, source := range d.chunks {
		for j, dest := range d.chunks {
			t.dispatch(&shaders.RefinePlace{Params: r.params, Counters: r.counters, Actions: r.actions,
				NewOffset: r.fresh, HoleOffset: r.holes, HoleList: r.list, Source: vk.Cast[uint32](source.View),
				Dest: vk.Cast[uint32](dest.View), Push: shaders.RefinePlacePush{FirstId: uint32(i) * size,
					ChunkSplats: size, NParams: rows, NState: state, DestFirstId: uint32(j) * size, DestSplats: size}},
				each)
		}
	}
	d.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.RefineUpdate{Params: r.params, Counters: r.counters, Actions: r.actions, Chunk: chunk,
			Push: shaders.RefineUpdatePush{FirstId: first, ChunkSplats: size, NParams: rows, NState: state}}
	})
	t.dispatch(&shaders.RefineCommit{Counters: r.counters}, vk.Groups(1))
}

func (r *refined) classify(d *model) {
	d.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.RefineClassify{Params: r.params, Counters: r.counters, Chunk: chunk, Actions: r.actions,
			NewOffset: r.fresh, HoleOffset: r.holes, GrowKeys: r.grow, PruneKeys: r.prune,
			Push: shaders.RefineClassifyPush{FirstId: first, ChunkSplats: uint32(d.size), NState: uint32(d.Stats)},
			Spec: shaders.RefineClassifySpec{Mixed: d.Mixed}}
	})
}

// checkRefine runs one refinement and judges counters, actions and every splat.
func checkRefine(t *trial, m *ref.Model[float32], r refinement) {
	if r.capacity == 0 {
		r.capacity = r.chunks * refineChunk
	}
	start := junkCounters(counts{layout.NSplats: uint32(m.N)})
	clear(start[layout.NActive:])
	start[layout.NActive] = uint32(m.N)
	if r.failedBefore {
		start[layout.Failed], start[layout.FailedUnit], start[layout.Needed], start[layout.NActive] =
			layout.FailedIsects, 3, 99, 0
	}
	d := t.upload(m, refineChunk, r.chunks)
	out := newRefined(d, refineParams(r.config(), r.capacity), start)
	out.refine(d, m.N)
	t.run()
	old := &ref.Model[float32]{Params: *m.Params.Clone(), M: *m.M.Clone(), V: *m.V.Clone(),
		Grad2D: slices.Clone(m.Grad2D), Count: slices.Clone(m.Count)}
	plan := ref.Refine(old, r.config())
	if plan.After > r.capacity && !r.failedBefore {
		start[layout.Failed], start[layout.FailedUnit], start[layout.Needed] = layout.FailedSplats, 17,
			uint32(plan.After)
	}
	if start[layout.Failed] != 0 {
		same("counters", got(t, out.counters)[:layout.NVisible], start[:layout.NVisible])
		d.untouched()
		return
	}
	out.judge(t, plan, r.target > 0, start)
	compareRefined(d.download(plan.After, m.Degree), old)
	d.restUntouched(plan.After, d.NParams)
}

// judge compares the integers.
func (r *refined) judge(t *trial, plan ref.RefinePlan, target bool, want []uint32) {
	var actions, holes []uint32
	below := uint32(0)
	for i, a := range plan.Actions {
		actions = append(actions, uint32(a))
		if a == ref.Prune {
			holes = append(holes, uint32(i))
			if i < plan.After {
				below++
			}
		}
	}
	want[layout.NSplats], want[layout.NAfter], want[layout.NFreeHoles] = uint32(plan.After), uint32(plan.After), below
	want[layout.NNew], want[layout.NHoles] = uint32(plan.Wanted), uint32(plan.Holes)
	if target {
		want[layout.NNew] = uint32(plan.New)
	}
	want[layout.NGrown], want[layout.NNewAllowed] = uint32(plan.New), uint32(plan.New)
	want[layout.NVisible] = got(t, r.counters)[layout.NVisible]
	same("actions", head(t, r.actions, len(actions)), actions)
	same("hole_list", head(t, r.list, len(holes)), holes)
	same("counters", got(t, r.counters), want)
}

// compareRefined requires the bytes of everything but revised opacities, and the children of splits, whose means go
// through exp, log, sin and cos, and whose parents are 1.6 times larger.
func compareRefined(got, want *ref.Model[float32]) {
	rows := ref.ParamRows(want.Degree)
	for i := range want.N {
		for r := range 3*rows + layout.StatRows {
			g, w := *modelAt(got, r, i), *modelAt(want, r, i)
			limit := 0.0
			switch {
			case !layout.Changed(r, layout.ChangeSplit|layout.ChangeRevise):
			case r < layout.RowQuats:
				limit = 1e-6 + 1e-6*math.Abs(float64(w)) + 1.6*sampledWithin(&want.Params, i, 1)
			case r < layout.RowLogitOpacities:
				limit = 1e-6
			default:
				limit = 2e-6 * math.Max(1, math.Abs(float64(w)))
			}
			if !(math.Abs(float64(g)-float64(w)) <= limit) {
				failf("binding chunk: row %d of splat %d: got %g, want %g", r, i, g, w)
			}
		}
	}
}

// checkCapacity gives room for the splats there will be, more or less.
func checkCapacity(t *trial, more int) {
	m := t.refinable(400, mix{keep: 4, duplicate: 3, split: 3, prune: 2})
	r := refinement{ceiling: 1000, chunks: 8}
	r.capacity = ref.Classify(m, r.config()).After + more
	checkRefine(t, m, r)
}

func refineKernelCases() []Case {
	after := counts{layout.NSplats: 10, layout.NActive: 10, layout.NAfter: 25}
	failed := maps.Clone(after)
	failed[layout.Failed] = layout.FailedSplats
	return slices.Concat(casesOf("refine_classify", table{
		{"sizes", over([]int{0, 1, refineChunk - 1, refineChunk, refineChunk + 1, 255, 256, 257, 700},
			func(t *trial, n int) {
				m := t.refinable(n, mix{keep: 1, duplicate: 1, split: 1, prune: 1})
				checkClassify(t, m, refinement{}.config(), true, nil)
			})},
		{"poison", over([]bool{false, true}, checkClassifyPoison)},
		{"values on thresholds", checkClassifyThresholds},
	}), []Case{
		newCase("refine_holes", "sizes", over([]int{0, 1, 255, 256, 257, 1000}, func(t *trial, n int) {
			eachOf([]int{1, 2, 4}, func(oneIn int) { checkHoles(t, n, oneIn) })
		})),
		newCase("refine_plan", "table of counts", over(plans, checkPlan)),
		newCase("refine_commit", "counts", func(t *trial) {
			checkCommit(t, after, 25)
			checkCommit(t, counts{layout.NSplats: 10, layout.NActive: 10, layout.NAfter: 0}, 0)
			checkCommit(t, counts{layout.NSplats: 10, layout.NActive: 0, layout.NAfter: 0}, 10)
			checkCommit(t, failed, 10)
		}),
	})
}

// checkClassify runs refine_classify alone. Every action must agree with the reference's if strict, and judge decides
// about each.
func checkClassify(t *trial, m *ref.Model[float32], c ref.RefineConfig[float32], strict bool,
	judge func(i int, action, want uint32)) {
	d := t.upload(m, refineChunk, 1)
	start := junkCounters(counts{layout.NActive: uint32(m.N), layout.NHoles: 0})
	r := newRefined(d, refineParams(c, d.size*len(d.chunks)), start)
	r.classify(d)
	t.run()
	d.untouched()
	f, h, g, k := head(t, r.fresh, m.N), head(t, r.holes, m.N), head(t, r.grow, m.N), head(t, r.prune, m.N)
	want, gone := ref.Classify(m, c), uint32(0)
	for i, action := range head(t, r.actions, m.N) {
		if strict && action != uint32(want.Actions[i]) {
			failf("binding actions: [%d]: got %d, want %d", i, action, want.Actions[i])
		}
		grows, goes := action == layout.ActionDuplicate || action == layout.ActionSplit, action == layout.ActionPrune
		gone += layout.Bit(goes)
		if action > layout.ActionPrune || f[i] != 0 || h[i] != layout.Bit(goes) || (g[i] != layout.Culled) != grows ||
			(k[i] == layout.Culled) != goes {
			failf("binding new_offset, hole_offset, grow_keys, prune_keys: [%d]: got %d, %d, %#x, %#x for action %d", i,
				f[i], h[i], g[i], k[i], action)
		}
		if judge != nil {
			judge(i, action, uint32(want.Actions[i]))
		}
	}
	same("counters", got(t, r.counters), with(start, layout.NHoles, gone))
}

// checkClassifyPoison puts each bad number into every row that decides: what is not a number, or infinitely large,
// goes.
func checkClassifyPoison(t *trial, anyScale bool) {
	rows := ref.ParamRows(1)
	// Every parameter up to sh0, and the statistics.
	decide := append(indices(layout.RowSh+3), 3*rows+layout.StatGrad2d, 3*rows+layout.StatCount)
	m := t.refinable(len(decide)*len(bad), mix{keep: 1, duplicate: 1, split: 1})
	for i := range m.N {
		*modelAt(m, decide[i/len(bad)], i) = bad[i%len(bad)]
	}
	checkClassify(t, m, refinement{anyScale: anyScale}.config(), false, func(i int, action, want uint32) {
		row, x := decide[i/len(bad)], bad[i%len(bad)]
		free := row >= 3*rows && (isNaN(x) || isInf(x)) // statistics that are no numbers: any action will do
		if action != want && !free {
			failf("binding actions: [%d]: got %d, want %d for %g in row %d", i, action, want, x, row)
		}
	})
}

// checkClassifyThresholds lets each quantity be a threshold or a neighbour of it: the action must be one that a
// rounding error away is right.
func checkClassifyThresholds(t *trial) {
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
	checkClassify(t, m, c, false, func(i int, action, _ uint32) {
		if action != uint32(a.Actions[i]) && action != uint32(b.Actions[i]) {
			failf("binding actions: [%d]: got %d, want %d or %d", i, action, a.Actions[i], b.Actions[i])
		}
	})
}

func checkHoles(t *trial, n, oneIn int) {
	actions, flags := t.uints(n, 3), make([]uint32, n)
	var want []uint32
	for i := range actions {
		if t.IntN(oneIn) == 0 {
			actions[i], flags[i] = layout.ActionPrune, 1
			want = append(want, uint32(i))
		}
	}
	offsets, _ := ref.Scan(flags)
	after := t.IntN(n + 2) // fewer than n, or not
	start := junkCounters(counts{layout.NActive: uint32(n), layout.NAfter: uint32(after),
		layout.NHoles: uint32(len(want))})
	wantCounters := start
	if n > 0 {
		below, _ := slices.BinarySearch(want, uint32(after))
		wantCounters = with(start, layout.NFreeHoles, uint32(below))
	}
	t.dispatch(&shaders.RefineHoles{Counters: update(t, start, exactly(wantCounters...)), Actions: in(t, actions...),
		HoleOffset: in(t, offsets...), HoleList: out[uint32](t, n, exactly(want...))}, vk.Items(n+256, 256))
	t.run()
}

type planning struct {
	n, holes, ranked, target, ceiling, capacity, failed uint32
	wanted, after, added                                uint32
}

var plans = []planning{
	{100, 10, 20, 0, 1000, 1000, 0, 20, 110, 20},
	{100, 10, 20, 0, 105, 1000, 0, 20, 105, 15}, {100, 10, 20, 0, 90, 1000, 0, 20, 90, 0},
	{100, 10, 20, 0, 50, 1000, 0, 20, 90, 0}, // a ceiling below what lives prunes nothing more
	{100, 10, 20, 0, 1000, 110, 0, 20, 110, 20}, {100, 10, 20, 0, 1000, 109, 0, 20, 110, 20},
	{100, 10, 20, 0, 1000, 109, layout.FailedIsects, 20, 110, 20}, {100, 100, 0, 0, 1000, 1000, 0, 0, 0, 0},
	{0, 0, 0, 0, 1000, 1000, 0, 0, 0, 0}, {100, 0, 0, 0, 1000, 100, 0, 0, 100, 0},
	{100, 10, 90, 95, 1000, 1000, 0, 5, 95, 5}, {100, 10, 90, 200, 1000, 1000, 0, 90, 180, 90},
	{100, 10, 90, 200, 120, 1000, 0, 30, 120, 30}, {100, 10, 90, 200, 1000, 150, 0, 90, 180, 90},
	{100, 10, 90, 90, 1000, 1000, 0, 0, 90, 0},
	{100, 10, 90, 40, 1000, 1000, 0, 0, 40, 0}, // a target below what lives does
}

func checkPlan(t *trial, p planning) {
	start := junkCounters(counts{layout.NActive: p.n, layout.NVisible: p.ranked, layout.NHoles: p.holes,
		layout.Failed: p.failed})
	want := slices.Clone(start)
	if p.after > p.capacity {
		fails(want, p.after)
	} else {
		want[layout.NNew], want[layout.NNewAllowed], want[layout.NAfter] = p.wanted, p.added, p.after
	}
	c := ref.RefineConfig[float32]{Cap: int(p.ceiling), Target: int(p.target)}
	t.dispatch(&shaders.RefinePlan{Params: in(t, refineParams(c, int(p.capacity))),
		Counters: update(t, start, exactly(want...))}, vk.Groups(1))
	t.run()
}

// fails changes counters as unit 17 does, which has no room for so many splats.
func fails(c []uint32, needed uint32) {
	if c[layout.Failed] == 0 {
		c[layout.FailedUnit] = 17
	}
	c[layout.Failed] |= layout.FailedSplats
	c[layout.Needed] = needed
}

func checkCommit(t *trial, set counts, splats uint32) {
	start := junkCounters(set)
	t.dispatch(&shaders.RefineCommit{Counters: update(t, start, exactly(with(start, layout.NSplats, splats)...))},
		vk.Groups(1))
	t.run()
}
