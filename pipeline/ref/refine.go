package ref

import (
	"cmp"
	"slices"

	"vksplat/shaders/layout"
)

// twin: refine_classify refine_rank refine_plan refine_select refine_holes refine_place refine_update refine_commit

// splitShrink is ln 1.6: children of a split are 1.6 times smaller (Kerbl et al. 2023, section 5.2).
const splitShrink = 0.4700036292457356

// Action is the decision of refinement for a splat.
type Action uint32

// Values of Action.
const (
	Keep Action = iota
	Duplicate
	Split
	Prune
)

// RefineConfig holds the thresholds of one refinement of the strategy 3dgs.
type RefineConfig[T Real] struct {
	GrowGrad2D   T // mean 2D gradient above which a splat grows
	GrowScale    T // largest scale up to which it is duplicated rather than split, world units
	PruneOpacity T // opacity below which it is pruned
	PruneScale   T // largest scale above which it is pruned, world units; 0: never
	// ceiling of the number of splats: growth beyond it does not happen, the highest scores come first
	Cap            int
	Target         int // splats to end with: thresholds of growth are ignored; 0: none
	RevisedOpacity bool
	Seed           uint64
	Step           uint32
}

// RefinePlan is the plan of a refinement.
type RefinePlan struct {
	Actions []Action  // [N] before anything is limited
	Scores  []float64 // [N] by which those that may grow are ranked
	Wanted  int       // splats that growth would have added without the ceiling
	Alive   int       // splats that are not pruned
	New     int       // splats added
	Excess  int       // splats that go because more than the target live
	Holes   int       // splats that go, for whatever reason
	After   int       // splats then
}

// Classify decides for every splat. Growth comes first and pruning judges its result: the children of a split by their
// own scale. With a target who grows is decided later, so pruning judges the splat as it is. Conditions are phrased to
// keep only what is known to be good, so that a NaN is pruned.
func Classify[T Real](model *Model[T], c RefineConfig[T]) RefinePlan {
	plan := RefinePlan{Actions: make([]Action, model.N), Scores: make([]float64, model.N)}
	for i := range model.N {
		s := model.logScale(i)
		scale := exp(max(s[0], s[1], s[2]))
		action, result := Keep, scale
		score := model.Grad2D[i] / max(model.Count[i], 1)
		grows := score > c.GrowGrad2D
		if c.Target > 0 {
			grows = model.Count[i] > 0 && score >= 0
		}
		if grows {
			action = Duplicate
			if !(scale <= c.GrowScale) {
				action = Split
				if c.Target == 0 {
					result = scale / 1.6
				}
			}
		}
		good := model.isFinite(i) && scale-scale == 0 && Sigmoid(model.LogitOpacities[i]) >= c.PruneOpacity
		if c.PruneScale != 0 {
			good = good && result <= c.PruneScale
		}
		if !good {
			action = Prune
		} else {
			plan.Alive++
			if action != Keep {
				plan.Wanted++
			}
		}
		plan.Actions[i], plan.Scores[i] = action, float64(score)
	}
	plan.count(c.Cap, c.Target)
	return plan
}

// count decides how many splats there will be.
func (p *RefinePlan) count(ceiling, target int) {
	if target > 0 {
		ceiling = min(ceiling, target)
		if p.Excess = max(0, p.Alive-target); p.Excess > 0 {
			p.Wanted = 0
		}
	}
	p.New = min(p.Wanted, max(0, ceiling-p.Alive))
	p.Holes = len(p.Actions) - p.Alive + p.Excess
	p.After = p.Alive - p.Excess + p.New
}

// choose makes the actions final: those of the highest scores grow, or, where more than the target live, those of the
// lowest opacity go and none grows. Equals are taken by id.
func (p *RefinePlan) choose(opacities func(i int) float64) {
	var ids []int
	for i, a := range p.Actions {
		if a == Duplicate || a == Split || p.Excess > 0 && a == Keep {
			ids = append(ids, i)
		}
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		if p.Excess > 0 {
			return cmp.Compare(opacities(a), opacities(b))
		}
		return cmp.Compare(p.Scores[b], p.Scores[a])
	})
	for rank, i := range ids {
		switch {
		case rank < p.Excess:
			p.Actions[i] = Prune
		case p.Excess > 0 || rank >= p.New:
			p.Actions[i] = Keep
		}
	}
}

// revisedLogit returns the logit of 1 - sqrt(1 - opacity) (Bulo et al. 2024, section 3.3).
func revisedLogit[T Real](logit T) T {
	x := min(max(logit, -80), 80)
	s := sqrt(1 / (1 + exp(x)))
	return log(Sigmoid(x) / ((1 + s) * s))
}

// isFinite reports whether every parameter of splat i up to its sh0 is a finite number.
func (m *Model[T]) isFinite(i int) bool {
	for r := range layout.RowSh + 3 {
		if x := *m.Params.At(r, i); x-x != 0 { // NaN or infinite
			return false
		}
	}
	return true
}

// Refine runs one refinement: duplicates, splits and prunes, in place and in a fixed order. Items to place are the new
// splats by parent, then the splats that live on at or beyond the new count; places are the holes below the new count,
// then the ids from the old count on. Item k goes to place k. Added splats and both children of a split start with zero
// moments; the statistics of all start again.
func Refine[T Real](model *Model[T], c RefineConfig[T]) RefinePlan {
	plan := Classify(model, c)
	plan.choose(func(i int) float64 { return float64(Sigmoid(model.LogitOpacities[i])) })
	old := *model
	n := old.N
	*model = *NewModel(NewParams[T](max(n, plan.After), old.Degree))

	var places []int
	for i := range n {
		if plan.Actions[i] == Prune && i < plan.After {
			places = append(places, i)
		}
	}
	for i := n; i < plan.After; i++ {
		places = append(places, i)
	}
	next := func() (to int) {
		to, places = places[0], places[1:]
		return to
	}
	for i, action := range plan.Actions {
		if action == Keep || action == Prune {
			continue
		}
		to := next()
		model.copySplat(to, &old.Params, i)
		if action == Split {
			model.becomeChild(to, &old.Params, i, 1, c)
		}
		model.revise(to, c)
	}
	for i, action := range plan.Actions {
		if action == Prune {
			continue
		}
		to := i
		if i >= plan.After {
			to = next()
		}
		model.copySplat(to, &old.Params, i)
		if action != Keep {
			model.revise(to, c)
		}
		if action == Split {
			model.becomeChild(to, &old.Params, i, 0, c)
			continue
		}
		model.M.copySplat(to, &old.M, i)
		model.V.copySplat(to, &old.V, i)
	}
	model.truncate(plan.After)
	return plan
}

// revise gives splat to the opacity of one of two.
func (m *Model[T]) revise(to int, c RefineConfig[T]) {
	if c.RevisedOpacity {
		m.LogitOpacities[to] = revisedLogit(m.LogitOpacities[to])
	}
}

// becomeChild makes splat to child 0 or 1 of splat id of parent: the mean sampled from the parent's Gaussian, the
// scales 1.6 times smaller.
func (m *Model[T]) becomeChild(to int, parent *Params[T], id int, child uint32, c RefineConfig[T]) {
	r := Philox([4]uint32{uint32(id), c.Step, child, 0}, [2]uint32{uint32(c.Seed), uint32(c.Seed >> 32)})
	var normal vec3[T]
	normal[0], normal[1] = normalPair[T](r[0], r[1])
	normal[2], _ = normalPair[T](r[2], r[3])
	scales := parent.scales(id)
	q := parent.quat(id)
	norm := quatNorm(q)
	for k := range q {
		q[k] /= norm
	}
	for k := range normal {
		normal[k] *= scales[k]
	}
	mean := parent.mean(id).add(quatRotation(q).apply(normal))
	for k := range mean {
		m.Means[3*to+k] = mean[k]
		m.LogScales[3*to+k] = parent.LogScales[3*id+k] - splitShrink
	}
}

// truncate drops the splats from n on.
func (m *Model[T]) truncate(n int) {
	for _, p := range []*Params[T]{&m.Params, &m.M, &m.V} {
		p.first(n)
	}
	m.Grad2D, m.Count = m.Grad2D[:n], m.Count[:n]
}
