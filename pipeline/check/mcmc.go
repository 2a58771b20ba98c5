package check

import (
	"math"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

func mcmcCases() []Case {
	rounds := []uint32{layout.RoundRelocate, layout.RoundGrow}
	sizes := []int{1, 2, refineChunk, refineChunk + 1, 255, 256, 257, 700}
	poison := func(t *trial) {
		m := t.faint((layout.RowSh + 3) * len(bad))
		for i := range m.N {
			*m.Params.At(i/len(bad), i) = bad[i%len(bad)]
		}
		eachOf(rounds, func(r uint32) { checkWeigh(t, m, r) })
	}
	copies := over(rounds, func(t *trial, r uint32) { checkCopies(t, 400, r, 0) })
	return slices.Concat([]Case{
		newCase("mcmc_plan", "table of counts", over(mcmcPlans, checkMCMCPlan)),
		newCase("mcmc_weigh", "sizes", over(sizes, func(t *trial, n int) {
			eachOf(rounds, func(r uint32) { checkWeigh(t, t.faint(n), r) })
		})),
		newCase("mcmc_weigh", "poison", poison),
		mixedCase("mcmc_weigh", "poison in mixed precision", poison),
		newCase("mcmc_place", "several chunks", copies),
		mixedCase("mcmc_place", "in mixed precision", copies),
		newCase("mcmc_update", "one splat takes all",
			over(rounds, func(t *trial, r uint32) { checkCopies(t, 1+2*layout.MaxRelocations, r, 0) })),
		newCase("mcmc_update", "a failed unit changes nothing",
			func(t *trial) { checkCopies(t, 400, layout.RoundGrow, layout.FailedSplats) }),
		newCase("mcmc_update", "edges of opacities and numbers of copies", checkRelocation),
	}, casesOf("mcmc_draw", table{
		{"sizes", over(sizes, func(t *trial, n int) {
			eachOf([]int{0, 1, n, 3*n + 5},
				func(copies int) { checkDraw(t, t.uints(n, 1<<20), copies, layout.RoundGrow) })
		})},
		{"in place of the dead", over([]int{1, 30, 600}, func(t *trial, dead int) {
			weights := t.uints(700, 1<<12)
			clear(weights[700-dead:])
			checkDraw(t, weights, dead, layout.RoundRelocate)
		})},
		{"weights of zero are never drawn", func(t *trial) {
			weights := make([]uint32, 600)
			weights[0], weights[299], weights[599] = 1, 1<<30, 1
			checkDraw(t, weights, 500, layout.RoundGrow)
		}},
		{"weights so small that draws fall on their bounds",
			func(t *trial) { checkDraw(t, t.uints(600, 2), 500, layout.RoundGrow) }},
		{"no weight at all", over(rounds, func(t *trial, r uint32) { checkDraw(t, make([]uint32, 300), 200, r) })},
	}))
}

// mcmcPlans are counts that mcmc_plan reads.
var mcmcPlans = []planning{
	{n: 100, target: 105, ceiling: 1000, capacity: 1000}, {n: 100, target: 105, ceiling: 103, capacity: 1000},
	{n: 100, target: 105, ceiling: 90, capacity: 1000}, {n: 100, target: 50, ceiling: 1000, capacity: 1000},
	{n: 100, target: 105, ceiling: 1000, capacity: 105}, {n: 100, target: 105, ceiling: 1000, capacity: 104},
	{n: 100, target: 105, ceiling: 1000, capacity: 104, failed: layout.FailedIsects},
	{n: 0, target: 105, ceiling: 1000, capacity: 1000},
	{n: 1, target: 70000 * 256, ceiling: 1 << 30, capacity: 1 << 30},
}

// faint returns n trained splats, a third of them near the opacity of the dead.
func (t source) faint(n int) *ref.Model[float32] {
	m := t.refinable(n, mix{keep: 1})
	for i := range n {
		switch t.IntN(3) {
		case 0:
			m.LogitOpacities[i] = float32(-5.3 - 2*t.Float64()) // below 0.005
		case 1:
			m.LogitOpacities[i] = float32(-5.2 + 12*t.Float64())
		}
	}
	return m
}

func mcmcParams(c ref.MCMCConfig[float32], ceiling, capacity int) layout.StepParams {
	return layout.StepParams{Unit: 17, Step: c.Step, SeedLo: uint32(c.Seed), SeedHi: uint32(c.Seed >> 32),
		PruneOpacity: c.PruneOpacity, TargetSplats: uint32(c.Target), MaxSplats: uint32(ceiling),
		SplatCapacity: uint32(capacity)}
}

func mcmcConfig(target int) ref.MCMCConfig[float32] {
	return ref.MCMCConfig[float32]{PruneOpacity: pruneOpacity, Target: target, Seed: 0x123456789ABCDEF0, Step: 700}
}

func checkMCMCPlan(t *trial, p planning) {
	start := junkCounters(counts{layout.NActive: p.n, layout.Failed: p.failed})
	want, grids := slices.Clone(start), counts{}
	after := uint32(ref.MCMCPlan(int(p.n), int(p.target), int(p.ceiling)))
	if after > p.capacity {
		fails(want, after)
	} else {
		want[layout.NNew], want[layout.NNewAllowed], want[layout.NAfter] = after-p.n, after-p.n, after
		grids[layout.ArgsDraws] = groups(max(p.n, after-p.n), layout.Group)
	}
	t.dispatch(&shaders.McmcPlan{Params: in(t, mcmcParams(mcmcConfig(int(p.target)), int(p.ceiling), int(p.capacity))),
		Counters: update(t, start, exactly(want...)), DispatchArgs: argsOf(t, grids)}, vk.Groups(1))
	t.run()
}

// checkWeigh allows a weight to be one off, where the opacity's rounding decides about the fraction.
func checkWeigh(t *trial, m *ref.Model[float32], round uint32) {
	d := t.upload(m, refineChunk, 1)
	n, total := m.N, d.size*len(d.chunks)
	actions, holes, weights := out[uint32](t, total), out[uint32](t, total), out[uint32](t, total)
	drawn := out[uint32](t, total, exactly(make([]uint32, n)...))
	params := in(t, mcmcParams(mcmcConfig(0), 0, 0))
	counters := in(t, junkCounters(counts{layout.NActive: uint32(n)})...)
	d.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.McmcWeigh{Params: params, Counters: counters, Chunk: chunk, Actions: actions, HoleOffset: holes,
			Weights: weights, Multiplicity: drawn, Spec: shaders.McmcWeighSpec{Mixed: d.Mixed},
			Push: shaders.McmcWeighPush{FirstId: first, ChunkSplats: refineChunk, Round: round}}
	})
	t.run()
	d.untouched()
	a, h, w := head(t, actions, n), head(t, holes, n), head(t, weights, n)
	want, dead := ref.Weigh(m, mcmcConfig(0), round)
	sum := uint64(0)
	for i := range n {
		// An opacity is right to a few 2^-24, and the share of a splat is at most 2^24.
		if h[i] != layout.Bit(dead[i]) || (a[i] == layout.ActionPrune) != dead[i] ||
			math.Abs(float64(w[i])-float64(want[i])) > 2+3e-7*float64(want[i]) || dead[i] && w[i] != 0 {
			failf("binding weights: [%d]: got %d, action %d, hole %d; want %d, dead: %v", i, w[i], a[i], h[i], want[i],
				dead[i])
		}
		sum += uint64(w[i])
	}
	if sum >= 1<<31 {
		failf("binding weights: they sum up to %d", sum)
	}
}

// homesOf are the places of copies: behind n splats, or of the last of them.
func homesOf(n, copies int, round uint32) []uint32 {
	homes := make([]uint32, copies)
	for k := range homes {
		if homes[k] = uint32(n + k); round == layout.RoundRelocate {
			homes[k] -= uint32(copies)
		}
	}
	return homes
}

func checkDraw(t *trial, weights []uint32, copies int, round uint32) {
	n := len(weights)
	for i := range weights { // the sum is below 2^31
		weights[i] = min(weights[i], uint32(1<<31/n-1))
	}
	sums, total := ref.Scan(weights)
	c, homes := mcmcConfig(0), homesOf(n, copies, round)
	sources, drawn := ref.DrawSources(weights, homes, c.Seed, c.Step, round)
	t.dispatch(&shaders.McmcDraw{Params: in(t, mcmcParams(c, 0, 0)), Counters: in(t,
		junkCounters(counts{layout.NActive: uint32(n), layout.NWeight: total, layout.NHoles: uint32(copies),
			layout.NNewAllowed: uint32(copies)})...), Weights: in(t, sums...), HoleList: in(t, homes...),
		Sources: out[uint32](t, copies, exactly(sources...)), Multiplicity: update(t, make([]uint32, n),
			exactly(drawn...)), DispatchArgs: argsOf(t, counts{layout.ArgsCopies: groups(uint32(copies),
			layout.Group)}), Push: shaders.McmcDrawPush{Round: round}}, vk.Items(copies+256, 256))
	t.run()
}

// checkCopies copies splats to the places of the dead or behind the last: a third of the copies are of one splat.
func checkCopies(t *trial, n int, round, failed uint32) {
	m := t.faint(n)
	m.LogitOpacities[0], m.LogitOpacities[1] = 40, -12 // an opacity of 1, and one below the floor
	homes := homesOf(n, n/3, round)
	sources, drawn := make([]uint32, len(homes)), make([]uint32, n)
	for k := range sources {
		if sources[k] = t.Uint32N(uint32(n - n/3)); k%3 == 0 {
			sources[k] = 0
		}
		if k == 4 {
			sources[k] = layout.NoSource
			continue
		}
		drawn[sources[k]]++
	}
	d := t.upload(m, refineChunk, blocksOf(n+len(homes), refineChunk))
	d.copySplats(mcmcParams(mcmcConfig(0), 0, 0), junkCounters(counts{layout.NActive: uint32(n),
		layout.NHoles: uint32(len(homes)), layout.NNewAllowed: uint32(len(homes)), layout.Failed: failed}),
		homes, sources, drawn, round)
	t.run()
	if failed != 0 {
		d.untouched()
		return
	}
	want, all := m, n
	if round == layout.RoundGrow {
		want = ref.NewModel(ref.NewParams[float32](n+len(homes), m.Degree)) // with places for the copies
		for i := range n {
			for r := range 3*ref.ParamRows(m.Degree) + layout.StatRows {
				*modelAt(want, r, i) = *modelAt(m, r, i)
			}
		}
		all = n + 4 // the next has no source, and nothing is written there
	}
	after := model64(want)
	ref.CopySources(after, homes, sources, drawn, ref.MCMCConfig[float64]{PruneOpacity: pruneOpacity}, round)
	compareCopies(d.download(all, m.Degree), after)
}

// checkRelocation is stricter than checkCopies, where the sum of equation 9 does not cancel too much.
func checkRelocation(t *trial) {
	logits := []float32{-200, -96.6, -20.7, -5.2953, -5.2933, -5.2913, -2.1972, 0, 2.1972, 4.5951, 6.9067}
	copies := []uint32{2, 3, 25, 50, 51, 52, math.MaxUint32}
	m := t.faint(len(logits) * len(copies))
	drawn := make([]uint32, m.N)
	for i := range drawn {
		m.LogitOpacities[i], drawn[i] = logits[i/len(copies)], copies[i%len(copies)]-1
	}
	d := t.upload(m, refineChunk, 0)
	d.copySplats(mcmcParams(mcmcConfig(0), 0, 0), junkCounters(counts{layout.NActive: uint32(m.N),
		layout.NNewAllowed: 0}), nil, nil, drawn, layout.RoundGrow)
	t.run()
	want := model64(m)
	ref.CopySources(want, nil, nil, drawn, ref.MCMCConfig[float64]{PruneOpacity: pruneOpacity}, layout.RoundGrow)
	got := d.download(m.N, m.Degree)
	compareCopies(got, want)
	for i := range got.LogitOpacities {
		got.LogitOpacities[i] = ref.Sigmoid(got.LogitOpacities[i])
		want.LogitOpacities[i] = ref.Sigmoid(want.LogitOpacities[i])
	}
	// 1 - pow(1 - o, 1/n): pow is right to a few 2^-22, and the difference keeps that as an absolute error.
	near("opacities", got.LogitOpacities, want.LogitOpacities, 2e-6, 1e-6)
	// The alternating sum's terms reach 100 times its value; and the opacity's error is relative to 0.005 at worst.
	near("log scales", got.LogScales, want.LogScales, 1e-3, 0)
}

func (d *model) copySplats(p layout.StepParams, start, homes, sources, drawn []uint32, round uint32) {
	t, size, rows, state := d.t, uint32(d.size), uint32(d.Stored), uint32(d.Stats)
	params, counters, list := in(t, p), in(t, start...), in(t, homes...)
	from, times := in(t, sources...), in(t, drawn...)
	for i, source := range d.chunks {
		for j, dest := range d.chunks {
			t.dispatch(&shaders.McmcPlace{Params: params, Counters: counters, Sources: from, Multiplicity: times,
				HoleList: list, Source: vk.Cast[uint32](source.View), Dest: vk.Cast[uint32](dest.View),
				Push: shaders.McmcPlacePush{FirstId: uint32(i) * size, ChunkSplats: size, NParams: rows, NState: state,
					DestFirstId: uint32(j) * size, DestSplats: size, Round: round}}, vk.Items(len(homes)+256, 256))
		}
	}
	d.dispatch(256, func(first uint32, chunk vk.Slice[float32]) vk.Pass {
		return &shaders.McmcUpdate{Params: params, Counters: counters, Multiplicity: times, Chunk: chunk,
			Push: shaders.McmcUpdatePush{FirstId: first, ChunkSplats: size, NParams: rows, NState: state, Round: round}}
	})
}

// compareCopies wants equal bytes but for opacities and scales: the opacity is 1 less a power right to 2^-22 or so,
// an error that is relative to 0.005 at worst; and the alternating sum behind the scale's factor has terms of up to 1e5
// times its value where 51 copies share an opacity of 1.
func compareCopies(got *ref.Model[float32], want *ref.Model[float64]) {
	for i := range got.N {
		for r := range ref.ParamRows(got.Degree) {
			g, w := float64(*got.Params.At(r, i)), *want.Params.At(r, i)
			limit := 0.0
			switch {
			case !layout.Changed(r, layout.ChangeRelocate):
			case r < layout.RowLogitOpacities:
				limit = 2e-2
			default:
				limit = 1e-3 + 1e-3*math.Max(0, w)
			}
			if !(math.Abs(g-w) <= limit) {
				failf("binding chunk: row %d of splat %d: got %g, want %g", r, i, g, w)
			}
		}
	}
	for k, w := range want.M.Tensors() {
		width := w.Width * got.N
		gm, gv := got.M.Tensors()[k].Data, got.V.Tensors()[k].Data
		near("chunk.first moments", gm, w.Data[:width], 0, 0)
		near("chunk.second moments", gv, want.V.Tensors()[k].Data[:width], 0, 0)
	}
	near("chunk.grad2d", got.Grad2D, want.Grad2D[:got.N], 0, 0)
	near("chunk.count", got.Count, want.Count[:got.N], 0, 0)
}
