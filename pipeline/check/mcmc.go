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

func mcmcCases() []Case {
	rounds := []uint32{layout.RoundRelocate, layout.RoundGrow}
	sizes := []int{1, 2, refineChunk, refineChunk + 1, 255, 256, 257, 700}
	return []Case{
		newCase("mcmc_plan", "table of counts", checkMCMCPlan),
		newCase("mcmc_weigh", "sizes", func(t *trial) error {
			return each(sizes,
				func(n int) error { return each(rounds, func(r uint32) error { return checkWeigh(t, t.faint(n), r) }) })
		}),
		newCase("mcmc_weigh", "poison", func(t *trial) error {
			decide := layout.RowSh + 3
			m := t.faint(decide * len(bad))
			for i := range m.N {
				*m.Params.At(i/len(bad), i) = bad[i%len(bad)]
			}
			return each(rounds, func(r uint32) error { return checkWeigh(t, m, r) })
		}),
		mixedCase("mcmc_weigh", "poison in mixed precision", func(t *trial) error {
			m := t.faint((layout.RowSh + 3) * len(bad))
			for i := range m.N {
				*m.Params.At(i/len(bad), i) = bad[i%len(bad)]
			}
			return each(rounds, func(r uint32) error { return checkWeigh(t, m, r) })
		}),
		newCase("mcmc_draw", "sizes", func(t *trial) error {
			return each(sizes, func(n int) error {
				return each([]int{0, 1, n, 3*n + 5},
					func(copies int) error { return checkDraw(t, t.uints(n, 1<<20), copies, layout.RoundGrow) })
			})
		}),
		newCase("mcmc_draw", "in place of the dead", func(t *trial) error {
			return each([]int{1, 30, 600}, func(dead int) error {
				weights := t.uints(700, 1<<12)
				clear(weights[700-dead:])
				return checkDraw(t, weights, dead, layout.RoundRelocate)
			})
		}),
		newCase("mcmc_draw", "weights of zero are never drawn", func(t *trial) error {
			weights := make([]uint32, 600)
			weights[0], weights[299], weights[599] = 1, 1<<30, 1
			return checkDraw(t, weights, 500, layout.RoundGrow)
		}),
		newCase("mcmc_draw", "weights so small that draws fall on their bounds", func(t *trial) error {
			return checkDraw(t, t.uints(600, 2), 500, layout.RoundGrow)
		}),
		newCase("mcmc_draw", "no weight at all", func(t *trial) error {
			return each(rounds, func(r uint32) error { return checkDraw(t, make([]uint32, 300), 200, r) })
		}),
		newCase("mcmc_place", "several chunks", func(t *trial) error {
			return each(rounds, func(r uint32) error { return checkCopies(t, 400, r, 0) })
		}),
		mixedCase("mcmc_place", "in mixed precision", func(t *trial) error {
			return each(rounds, func(r uint32) error { return checkCopies(t, 400, r, 0) })
		}),
		newCase("mcmc_update", "one splat takes all", func(t *trial) error {
			return each(rounds, func(r uint32) error { return checkCopies(t, 1+2*layout.MaxRelocations, r, 0) })
		}),
		newCase("mcmc_update", "a failed unit changes nothing", checkFailedCopies),
	}
}

func checkFailedCopies(t *trial) error {
	return checkCopies(t, 400, layout.RoundGrow, layout.FailedSplats)
}

// faint returns n trained splats, a third of them near the opacity of the dead.
func (t *trial) faint(n int) *ref.Model[float32] {
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
	return layout.StepParams{
		Unit: 17, Step: c.Step, SeedLo: uint32(c.Seed), SeedHi: uint32(c.Seed >> 32), PruneOpacity: c.PruneOpacity,
		TargetSplats: uint32(c.Target),
		MaxSplats:    uint32(ceiling), SplatCapacity: uint32(capacity),
	}
}

func mcmcConfig(target int) ref.MCMCConfig[float32] {
	return ref.MCMCConfig[float32]{PruneOpacity: pruneOpacity, Target: target, Seed: 0x123456789ABCDEF0, Step: 700}
}

func checkMCMCPlan(t *trial) error {
	for _, p := range []struct {
		n, target, ceiling, capacity int
		failed                       uint32
	}{
		{100, 105, 1000, 1000, 0}, {100, 105, 103, 1000, 0}, {100, 105, 90, 1000, 0}, {100, 50, 1000, 1000, 0},
		{100, 105, 1000, 105, 0},
		{100, 105, 1000, 104, 0}, {100, 105, 1000, 104, layout.FailedIsects}, {0, 105, 1000, 1000, 0},
		{1, 70000 * 256, 1 << 30, 1 << 30, 0},
	} {
		start := junkCounters(map[int]uint32{layout.NActive: uint32(p.n), layout.Failed: p.failed})
		want := slices.Clone(start)
		after := ref.MCMCPlan(p.n, p.target, p.ceiling)
		if after > p.capacity {
			if p.failed == 0 {
				want[layout.FailedUnit] = 17
			}
			want[layout.Failed] |= layout.FailedSplats
			want[layout.Needed] = uint32(after)
		} else {
			want[layout.NNew], want[layout.NNewAllowed], want[layout.NAfter] = uint32(after-p.n), uint32(after-p.n),
				uint32(after)
		}
		l := t.list()
		counters, args := inout(l, "counters", start), output[[3]uint32](l, "dispatch_args", layout.NArgs)
		l.r.Dispatch(&shaders.McmcPlan{
			Params:   input(l, "params", []layout.StepParams{mcmcParams(mcmcConfig(p.target), p.ceiling, p.capacity)}),
			Counters: counters.Slice, DispatchArgs: args.Slice,
		}, vk.Groups(1))
		if err := l.run(); err != nil {
			return err
		}
		err := equal("counters", counters.got, want)
		if after <= p.capacity {
			err = first(err, checkGrid(layout.ArgsDraws, args.got[layout.ArgsDraws],
				groups(uint32(max(p.n, after-p.n)), layout.Group)))
		}
		if err != nil {
			return fmt.Errorf("%+v: %w", p, err)
		}
	}
	return nil
}

// checkWeigh allows a weight to be one off, where the opacity's rounding decides about the fraction.
func checkWeigh(t *trial, m *ref.Model[float32], round uint32) error {
	l := t.list()
	chunks := max(1, blocksOf(m.N, refineChunk))
	d := l.upload(m, refineChunk, chunks)
	total := chunks * refineChunk
	actions, holes := output[uint32](l, "actions", total), output[uint32](l, "hole_offset", total)
	weights, drawn := output[uint32](l, "weights", total), output[uint32](l, "multiplicity", total)
	params := input(l, "params", []layout.StepParams{mcmcParams(mcmcConfig(0), 0, 0)})
	counters := input(l, "counters", junkCounters(map[int]uint32{layout.NActive: uint32(m.N)}))
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.McmcWeigh{
			Params: params, Counters: counters, Chunk: chunk.Slice, Actions: actions.Slice, HoleOffset: holes.Slice,
			Weights: weights.Slice, Multiplicity: drawn.Slice,
			Push: shaders.McmcWeighPush{FirstId: uint32(i * refineChunk), ChunkSplats: refineChunk, Round: round},
			Spec: shaders.McmcWeighSpec{Mixed: d.mixed},
		}, vk.Items(refineChunk, 256))
	}
	if err := l.run(); err != nil {
		return err
	}
	a, err1 := actions.written(m.N)
	h, err2 := holes.written(m.N)
	w, err3 := weights.written(m.N)
	k, err4 := drawn.written(m.N)
	if err := first(err1, err2, err3, err4, d.untouched(), equal("multiplicity", k, make([]uint32, m.N))); err != nil {
		return err
	}
	want, dead := ref.Weigh(m, mcmcConfig(0), round)
	sum := uint64(0)
	for i := range m.N {
		gone := uint32(0)
		if dead[i] {
			gone = 1
		}
		// An opacity is right to a few 2^-24, and the share of a splat is at most 2^24.
		if h[i] != gone || (a[i] == layout.ActionPrune) != dead[i] ||
			math.Abs(float64(w[i])-float64(want[i])) > 2+3e-7*float64(want[i]) || dead[i] && w[i] != 0 {
			return fmt.Errorf("binding weights: [%d]: got %d, action %d, hole %d; want %d, dead: %v", i, w[i], a[i],
				h[i], want[i], dead[i])
		}
		sum += uint64(w[i])
	}
	if sum >= 1<<31 {
		return fmt.Errorf("binding weights: they sum up to %d", sum)
	}
	return nil
}

func checkDraw(t *trial, weights []uint32, copies int, round uint32) error {
	l := t.list()
	n := len(weights)
	for i := range weights { // the sum is below 2^31
		weights[i] = min(weights[i], uint32(1<<31/n-1))
	}
	sums, total := ref.Scan(weights)
	c := mcmcConfig(0)
	homes := make([]uint32, copies)
	for k := range homes {
		homes[k] = uint32(n + k)
		if round == layout.RoundRelocate {
			homes[k] = uint32(n - copies + k)
		}
	}
	set := map[int]uint32{
		layout.NActive: uint32(n), layout.NWeight: uint32(total), layout.NHoles: uint32(copies),
		layout.NNewAllowed: uint32(copies),
	}
	sources, drawn := output[uint32](l, "sources", copies), inout(l, "multiplicity", make([]uint32, n))
	args := output[[3]uint32](l, "dispatch_args", layout.NArgs)
	l.r.Dispatch(&shaders.McmcDraw{
		Params:   input(l, "params", []layout.StepParams{mcmcParams(c, 0, 0)}),
		Counters: input(l, "counters", junkCounters(set)),
		Weights:  input(l, "weights", sums), HoleList: input(l, "hole_list", homes), Sources: sources.Slice,
		Multiplicity: drawn.Slice,
		DispatchArgs: args.Slice, Push: shaders.McmcDrawPush{Round: round},
	}, vk.Items(copies+256, 256))
	if err := l.run(); err != nil {
		return err
	}
	wantSources, wantDrawn := ref.DrawSources(weights, homes, c.Seed, c.Step, round)
	return first(
		equal("sources", sources.got, wantSources), equal("multiplicity", drawn.got, wantDrawn),
		checkGrid(layout.ArgsCopies, args.got[layout.ArgsCopies], groups(uint32(copies), layout.Group)),
	)
}

// checkCopies copies splats to the places of the dead or behind the last: a third of the copies are of one splat.
func checkCopies(t *trial, n int, round, failed uint32) error {
	l := t.list()
	m := t.faint(n)
	m.LogitOpacities[0], m.LogitOpacities[1] = 40, -12 // an opacity of 1, and one below the floor
	var homes []uint32
	alive := n - n/3
	for k := range n / 3 {
		homes = append(homes, uint32(n+k))
		if round == layout.RoundRelocate {
			homes[k] = uint32(alive + k)
		}
	}
	sources, drawn := make([]uint32, len(homes)), make([]uint32, n)
	for k := range sources {
		if sources[k] = t.Uint32N(uint32(alive)); k%3 == 0 {
			sources[k] = 0
		}
		if k == 4 {
			sources[k] = layout.NoSource
			continue
		}
		drawn[sources[k]]++
	}
	chunks := blocksOf(n+len(homes), refineChunk)
	d := l.upload(m, refineChunk, chunks)
	set := map[int]uint32{
		layout.NActive: uint32(n), layout.NHoles: uint32(len(homes)), layout.NNewAllowed: uint32(len(homes)),
		layout.Failed: failed,
	}
	c := mcmcConfig(0)
	l.copySplats(d, []layout.StepParams{mcmcParams(c, 0, 0)}, junkCounters(set), homes, sources, drawn, round)
	if err := l.run(); err != nil {
		return err
	}
	if failed != 0 {
		return d.untouched()
	}
	all := n
	want := model64(m)
	if round == layout.RoundGrow {
		all += len(homes)
		want = model64(extended(m, all))
		if sources[4] == layout.NoSource { // nothing was written there
			all = n + 4
		}
	}
	ref.CopySources(want, homes, sources, drawn, ref.MCMCConfig[float64]{PruneOpacity: pruneOpacity}, round)
	return compareCopies(d.download(all, m.Degree), want)
}

// extended returns m with places for n splats.
func extended(m *ref.Model[float32], n int) *ref.Model[float32] {
	out := ref.NewModel(ref.NewParams[float32](n, m.Degree))
	for i := range m.N {
		for r := range 3*ref.ParamRows(m.Degree) + layout.StatRows {
			*modelAt(out, r, i) = *modelAt(m, r, i)
		}
	}
	return out
}

func (l *list) copySplats(d *model, p []layout.StepParams, start, homes, sources, drawn []uint32, round uint32) {
	params, counters, list := input(l, "params", p), input(l, "counters", start), input(l, "hole_list", homes)
	from, times := input(l, "sources", sources), input(l, "multiplicity", drawn)
	size, rows, state := uint32(d.size), uint32(d.stored), uint32(d.stats)
	for i, source := range d.chunks {
		for j, dest := range d.chunks {
			l.r.Dispatch(&shaders.McmcPlace{
				Params: params, Counters: counters, Sources: from, Multiplicity: times, HoleList: list,
				Source: vk.Cast[uint32](source.View), Dest: vk.Cast[uint32](dest.View),
				Push: shaders.McmcPlacePush{FirstId: uint32(i) * size, ChunkSplats: size, NParams: rows, NState: state,
					DestFirstId: uint32(j) * size, DestSplats: size, Round: round},
			}, vk.Items(len(homes)+256, 256))
		}
	}
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.McmcUpdate{
			Params: params, Counters: counters, Multiplicity: times, Chunk: chunk.Slice,
			Push: shaders.McmcUpdatePush{FirstId: uint32(i) * size, ChunkSplats: size, NParams: rows, NState: state,
				Round: round},
		}, vk.Items(d.size, 256))
	}
}

// compareCopies requires equal bytes but for opacities and scales: the opacity is 1 less a power right to 2^-22 or so,
// an error that is relative to 0.005 at worst; and the alternating sum behind the scale's factor has terms of up to 1e5
// times its value where 51 copies share an opacity of 1.
func compareCopies(got *ref.Model[float32], want *ref.Model[float64]) error {
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
				return fmt.Errorf("binding chunk: row %d of splat %d: got %g, want %g", r, i, g, w)
			}
		}
	}
	for k, w := range want.M.Tensors() {
		width := w.Width * got.N
		gm, gv := got.M.Tensors()[k].Data, got.V.Tensors()[k].Data
		if err := first(closeTo("chunk.first moments", gm, w.Data[:width], 0, 0),
			closeTo("chunk.second moments", gv, want.V.Tensors()[k].Data[:width], 0, 0)); err != nil {
			return err
		}
	}
	return first(closeTo("chunk.grad2d", got.Grad2D, want.Grad2D[:got.N], 0, 0),
		closeTo("chunk.count", got.Count, want.Count[:got.N], 0, 0))
}
