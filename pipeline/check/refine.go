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

// refineChunk is the chunk size of refinements: a few hundred splats fill several.
const refineChunk = 130

func refineCases() []Case {
	mixed := mix{keep: 4, duplicate: 2, split: 2, prune: 3}
	run := func(ceiling func(n int) int, m mix, sizes ...int) func(t *trial) error {
		return func(t *trial) error {
			return each(sizes, func(n int) error {
				return checkRefine(t, t.refinable(n, m), refinement{ceiling: ceiling(n), chunks: 8})
			})
		}
	}
	none := func(int) int { return math.MaxInt32 }
	return []Case{
		newCase("refine_place", "sizes and several chunks",
			run(none, mixed, 0, 1, 2, 3, refineChunk-1, refineChunk, refineChunk+1, 255, 256, 257, 500)),
		newCase("refine_place", "more holes than new splats",
			run(none, mix{keep: 4, duplicate: 1, split: 1, prune: 6}, 500)),
		newCase("refine_place", "more new splats than holes",
			run(none, mix{keep: 2, duplicate: 4, split: 4, prune: 1}, 500)),
		newCase("refine_place", "all are pruned", run(none, mix{prune: 1}, 1, 300)),
		newCase("refine_place", "all are duplicated", run(none, mix{duplicate: 1}, 1, 300)),
		newCase("refine_place", "all but one pruned", func(t *trial) error {
			return each([]int{0, 150, 299}, func(kept int) error {
				m := t.refinable(300, mix{prune: 1})
				*m.Params.At(layout.RowLogitOpacities, kept), m.Grad2D[kept], m.LogScales[3*kept] = 3, 0, -6
				m.LogScales[3*kept+1], m.LogScales[3*kept+2] = -7, -7
				return checkRefine(t, m, refinement{ceiling: 1000, chunks: 3})
			})
		}),
		newCase("refine_place", "the ceiling holds growth back", func(t *trial) error {
			return each([]int{0, 1, 300, 399, 400, 410, 450}, func(ceiling int) error {
				return checkRefine(t, t.refinable(400, mixed), refinement{ceiling: ceiling, chunks: 8})
			})
		}),
		mixedCase("refine_place", "in mixed precision", run(none, mixed, 1, refineChunk, 500)),
		newCase("refine_update", "all split", run(none, mix{split: 1}, 1, 300)),
		newCase("refine_update", "nothing happens but that statistics start anew", run(none, mix{keep: 1}, 1, 300)),
		newCase("refine_place", "capacity just enough", func(t *trial) error { return checkCapacity(t, 0) }),
		newCase("refine_plan", "capacity one short: nothing changes",
			func(t *trial) error { return checkCapacity(t, -1) }),
		newCase("refine_commit", "after a failure nothing changes", func(t *trial) error {
			return checkRefine(t, t.refinable(400, mixed), refinement{ceiling: 1000, chunks: 8, failedBefore: true})
		}),
		newCase("refine_update", "no pruning by scale", func(t *trial) error {
			return checkRefine(t, t.refinable(400, mixed), refinement{ceiling: 1000, chunks: 8, anyScale: true})
		}),
	}
}

// rankedCases are those in which who grows or goes depends on all splats.
func rankedCases() []Case {
	mixed := mix{keep: 4, duplicate: 2, split: 2, prune: 3}
	return []Case{
		newCase("refine_select", "a target: growth, pruning, neither", func(t *trial) error {
			return each([]int{1, 150, 299, 300, 301, 330, 450, 5000}, func(target int) error {
				return checkRefine(t, t.refinable(400, mixed), refinement{ceiling: 1000, chunks: 8, target: target})
			})
		}),
		newCase("refine_rank", "a target above the ceiling, and splats never seen", func(t *trial) error {
			m := t.refinable(400, mixed)
			for i := range m.N {
				if t.IntN(2) == 0 {
					m.Grad2D[i], m.Count[i] = 0, 0
				}
			}
			return checkRefine(t, m, refinement{ceiling: 410, chunks: 8, target: 700})
		}),
		newCase("refine_select", "equals grow and go by id", func(t *trial) error {
			return each([]int{0, 200, 350}, func(target int) error {
				m := t.refinable(300, mix{duplicate: 1})
				for i := range m.N {
					m.Grad2D[i], m.Count[i], m.LogitOpacities[i] = 1, 1, float32(i%2)
				}
				return checkRefine(t, m, refinement{ceiling: 350, chunks: 4, target: target})
			})
		}),
		newCase("refine_place", "revised opacities", func(t *trial) error {
			return each([]float32{-5, -1, 0, 3, 20, 90}, func(logit float32) error {
				m := t.refinable(300, mixed)
				for i := range m.N {
					if m.LogitOpacities[i] > -5 {
						m.LogitOpacities[i] = logit
					}
				}
				return checkRefine(t, m, refinement{ceiling: 400, chunks: 4, revised: true})
			})
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
func (t *trial) refinable(n int, m mix) *ref.Model[float32] {
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

// refinement is how one is run.
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
	c := ref.RefineConfig[float32]{
		GrowGrad2D: growGrad2D, GrowScale: growScale, PruneOpacity: pruneOpacity, PruneScale: pruneScale,
		Cap: r.ceiling, Seed: 0x123456789ABCDEF0, Step: 700,
	}
	if r.anyScale {
		c.PruneScale = 0
	}
	c.Target, c.RevisedOpacity = r.target, r.revised
	return c
}

func refineParams(c ref.RefineConfig[float32], capacity int) layout.StepParams {
	revised := uint32(0)
	if c.RevisedOpacity {
		revised = 1
	}
	return layout.StepParams{
		TargetSplats: uint32(c.Target), RevisedOpacity: revised,
		Unit: 17, Step: c.Step, SeedLo: uint32(c.Seed), SeedHi: uint32(c.Seed >> 32), GrowGrad2d: c.GrowGrad2D,
		GrowScale:    c.GrowScale,
		PruneOpacity: c.PruneOpacity, PruneScale: c.PruneScale, MaxSplats: uint32(c.Cap),
		SplatCapacity: uint32(capacity),
	}
}

// refined is what a refinement writes beside the chunks.
type refined struct {
	counters, actions, fresh, holes, list *buffer[uint32]
	grow, prune                           *buffer[uint32] // keys
}

// refine records the passes of a refinement.
func (l *list) refine(d *model, n int, params vk.Slice[layout.StepParams], start []uint32) *refined {
	total := d.size * len(d.chunks)
	out := &refined{
		counters: inout(l, "counters", start), actions: output[uint32](l, "actions", total),
		fresh: output[uint32](l, "new_offset", total),
		holes: output[uint32](l, "hole_offset", total), list: output[uint32](l, "hole_list", total),
		grow: output[uint32](l, "grow_keys", total), prune: output[uint32](l, "prune_keys", total),
	}
	out.grow.start = make([]uint32, total) // for its length
	args := output[[3]uint32](l, "dispatch_args", layout.NArgs)
	size, rows, state, each := uint32(d.size), uint32(d.stored), uint32(d.stats), vk.Items(d.size, 256)
	c, actions, fresh, holes := out.counters.Slice, out.actions.Slice, out.fresh.Slice, out.holes.Slice
	l.chooseGrowth(d, n, params, out, args.Slice)
	l.scan(params, c, fresh, args.Slice, n, layout.NActive, layout.NGrown, 0)
	l.scan(params, c, holes, args.Slice, n, layout.NActive, layout.NHoles, 0)
	l.r.Dispatch(&shaders.RefineHoles{Counters: c, Actions: actions, HoleOffset: holes, HoleList: out.list.Slice},
		vk.Items(n, 256))
	for i, source := range d.chunks {
		for j, dest := range d.chunks {
			l.r.Dispatch(&shaders.RefinePlace{
				Params: params, Counters: c, Actions: actions, NewOffset: fresh, HoleOffset: holes,
				HoleList: out.list.Slice,
				Source:   vk.Cast[uint32](source.View), Dest: vk.Cast[uint32](dest.View),
				Push: shaders.RefinePlacePush{FirstId: uint32(i) * size, ChunkSplats: size, NParams: rows,
					NState: state, DestFirstId: uint32(j) * size, DestSplats: size},
			}, each)
		}
	}
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.RefineUpdate{
			Params: params, Counters: c, Actions: actions, Chunk: chunk.Slice,
			Push: shaders.RefineUpdatePush{FirstId: uint32(i) * size, ChunkSplats: size, NParams: rows, NState: state},
		}, each)
	}
	l.r.Dispatch(&shaders.RefineCommit{Counters: c}, vk.Groups(1))
	return out
}

// chooseGrowth records the passes that decide who grows and who goes.
func (l *list) chooseGrowth(d *model, n int, params vk.Slice[layout.StepParams], out *refined,
	args vk.Slice[[3]uint32]) {
	size, each := uint32(d.size), vk.Items(d.size, 256)
	c, actions, fresh, holes := out.counters.Slice, out.actions.Slice, out.fresh.Slice, out.holes.Slice
	for i, chunk := range d.chunks {
		l.r.Dispatch(&shaders.RefineClassify{
			Params: params, Counters: c, Chunk: chunk.Slice, Actions: actions, NewOffset: fresh, HoleOffset: holes,
			GrowKeys: out.grow.Slice, PruneKeys: out.prune.Slice,
			Push: shaders.RefineClassifyPush{FirstId: uint32(i) * size, ChunkSplats: size, NState: uint32(d.stats)},
			Spec: shaders.RefineClassifySpec{Mixed: d.mixed},
		}, each)
	}
	l.r.Dispatch(&shaders.RefineRank{Params: params, Counters: c, PruneKeys: out.prune.Slice, Keys: out.grow.Slice},
		vk.Items(n, 256))
	_, ranked := sortShapes(l.d)[0].radixSort(l, c, args, out.grow, out.grow, 31, true)
	l.r.Dispatch(&shaders.RefinePlan{Params: params, Counters: c}, vk.Groups(1))
	l.r.Dispatch(&shaders.RefineSelect{
		Params: params, Counters: c, SplatFromRank: ranked.Slice, Actions: actions, NewOffset: fresh, HoleOffset: holes,
	}, vk.Items(n, 256))
}

// checkRefine runs one refinement and judges counters, actions and every splat.
func checkRefine(t *trial, m *ref.Model[float32], r refinement) error {
	l := t.list()
	if r.capacity == 0 {
		r.capacity = r.chunks * refineChunk
	}
	n := m.N
	start := junkCounters(map[int]uint32{layout.NSplats: uint32(n)})
	clear(start[layout.NActive:])
	start[layout.NActive] = uint32(n)
	if r.failedBefore {
		start[layout.Failed], start[layout.FailedUnit], start[layout.Needed],
			start[layout.NActive] = layout.FailedIsects, 3, 99, 0
	}
	d := l.upload(m, refineChunk, r.chunks)
	out := l.refine(d, n, input(l, "params", []layout.StepParams{refineParams(r.config(), r.capacity)}), start)
	if err := l.run(); err != nil {
		return err
	}
	if r.failedBefore {
		return first(equal("counters", out.counters.got[:layout.NVisible], start[:layout.NVisible]), d.untouched())
	}
	old := &ref.Model[float32]{Params: *m.Params.Clone(), M: *m.M.Clone(), V: *m.V.Clone(),
		Grad2D: slices.Clone(m.Grad2D), Count: slices.Clone(m.Count)}
	plan := ref.Refine(old, r.config())
	if plan.After > r.capacity {
		want := slices.Clone(start)
		want[layout.Failed], want[layout.FailedUnit], want[layout.Needed] = layout.FailedSplats, 17, uint32(plan.After)
		return first(equal("counters", out.counters.got[:layout.NVisible], want[:layout.NVisible]), d.untouched())
	}
	return first(out.judge(plan, r.target > 0, start), compareRefined(d.download(plan.After, m.Degree), old),
		d.restUntouched(plan.After, d.params))
}

// judge compares the integers.
func (r *refined) judge(plan ref.RefinePlan, target bool, start []uint32) error {
	n := len(plan.Actions)
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
	want := slices.Clone(start)
	want[layout.NSplats], want[layout.NNew], want[layout.NHoles] = uint32(plan.After), uint32(plan.Wanted),
		uint32(plan.Holes)
	if target {
		want[layout.NNew] = uint32(plan.New)
	}
	want[layout.NGrown], want[layout.NVisible] = uint32(plan.New), r.counters.got[layout.NVisible]
	want[layout.NAfter], want[layout.NFreeHoles], want[layout.NNewAllowed] = uint32(plan.After), below, uint32(plan.New)
	if len(plan.Actions) == 0 {
		want[layout.NFreeHoles] = 0 // nobody is there to count
	}
	gotActions, err1 := r.actions.written(n)
	gotHoles, err2 := r.list.written(len(holes))
	return first(err1, err2, equal("actions", gotActions, actions), equal("hole_list", gotHoles, holes),
		equal("counters", r.counters.got, want))
}

// compareRefined requires the bytes of everything but revised opacities, and the children of splits, whose means go
// through exp, log, sin and cos: a sample is up to 6 standard deviations away, and these are right to 2^-20 or so.
func compareRefined(got, want *ref.Model[float32]) error {
	rows := ref.ParamRows(want.Degree)
	for i := range want.N {
		for r := range 3*rows + layout.StatRows {
			g, w := *modelAt(got, r, i), *modelAt(want, r, i)
			limit := 0.0
			switch {
			case !layout.Changed(r, layout.ChangeSplit|layout.ChangeRevise):
			case r < layout.RowQuats:
				limit = 3e-6 + 1e-6*math.Abs(float64(w))
			case r < layout.RowLogitOpacities:
				limit = 1e-6
			default:
				limit = 2e-6 * math.Max(1, math.Abs(float64(w)))
			}
			if !(math.Abs(float64(g)-float64(w)) <= limit) {
				return fmt.Errorf("binding chunk: row %d of splat %d: got %g, want %g", r, i, g, w)
			}
		}
	}
	return nil
}

// checkCapacity gives room for the splats there will be, more or less.
func checkCapacity(t *trial, more int) error {
	m := t.refinable(400, mix{keep: 4, duplicate: 3, split: 3, prune: 2})
	r := refinement{ceiling: 1000, chunks: 8}
	r.capacity = ref.Classify(m, r.config()).After + more
	return checkRefine(t, m, r)
}
