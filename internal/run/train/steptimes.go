package train

import (
	"math"
	"slices"
	"sort"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// stepTimes are the seconds of a step, as far as they follow from the number of splats and the size of photos: those of
// two models, between and beyond which they are taken to grow with the root of the number. refine is what a refinement
// takes: in a short schedule there is one after every step or two.
type stepTimes struct {
	few, many modelTimes
	refine    float64
}

// modelTimes are the seconds of a step by the number of splats and by how often photos are halved. Sizes that
// are missing at the end take as long as the last one.
type modelTimes struct {
	splats  int
	seconds []float64
}

func (m *modelTimes) at(level int) float64 {
	if len(m.seconds) == 0 {
		return 0
	}
	return m.seconds[min(level, len(m.seconds)-1)]
}

// growsSlower is how many times longer steps are taken to be with the last splats than with the first, at most, where
// they are not timed.
const growsSlower = 3

// slower returns what is taken for the times of a model of more splats, before they are known.
func (m *modelTimes) slower(splats int) modelTimes {
	more := modelTimes{splats, slices.Clone(m.seconds)}
	for i := range more.seconds {
		more.seconds[i] *= min(growsSlower, max(1, float64(splats)/float64(max(m.splats, 1))))
	}
	return more
}

// crowded is how many times longer a step takes with the last splats than with as many that were never trained: trained
// ones overlap more. With the root it foresees the seconds of runs of 2 to 11 s on an H200 within a fifth; see
// bench/NOTES.md.
const crowded = 1.2

// at returns the seconds of a step.
func (t *stepTimes) at(splats, level int) float64 {
	few, many := t.few.at(level), t.many.at(level)
	if t.few.splats == t.many.splats {
		return many
	}
	many *= crowded
	first := math.Sqrt(float64(t.few.splats))
	share := (math.Sqrt(float64(splats)) - first) / (math.Sqrt(float64(t.many.splats)) - first)
	return max(few+(many-few)*share, min(few, many)/2)
}

// scheduleSamples is at how many steps a schedule is looked at: a recipe's is smooth, but for a few sizes of photos.
const scheduleSamples = 400

// schedule returns the seconds of all steps of a recipe.
func (t *stepTimes) schedule(cfg *recipe.Config, g growth) (seconds float64) {
	n := min(cfg.Iterations, scheduleSamples)
	for i := range n {
		step := (2*i + 1) * cfg.Iterations / (2 * n)
		seconds += t.at(g.at(cfg, step), cfg.Level(step))
	}
	return seconds*float64(cfg.Iterations)/float64(max(n, 1)) + t.refine*float64(cfg.Refinements())
}

// fit returns how many steps the longest run by a recipe has, at most the recipe's, whose steps take no longer.
func (t *stepTimes) fit(cfg recipe.Config, g growth, seconds float64) int {
	return sort.Search(cfg.Iterations, func(less int) bool {
		short := g.ofSteps(cfg, less+1)
		return t.schedule(&short, g) > seconds*(1+1e-9)
	})
}

// growth says how the number of splats changes in a run: what recipe.Config.TargetSplats wants to know, where gradients
// decide how many there are in the end a guess, and whether there are fewer after fewer steps.
type growth struct {
	first, ceiling, guess int
	fewer                 bool
}

// ofSteps returns a recipe scaled to a number of steps. Splats that follow the capture become fewer by the root of the
// share: with fewer steps each is seen less often, and what they take is better spent on steps.
func (g growth) ofSteps(cfg recipe.Config, steps int) recipe.Config {
	share := float64(steps) / float64(cfg.Iterations)
	short := cfg.Scaled(share)
	short.Iterations = steps
	if g.fewer && share < 1 {
		short.Splats = max(min(g.first, cfg.Splats), int(math.Sqrt(share)*float64(cfg.Splats)))
	}
	return short
}

// last is the number of splats in the end.
func (g growth) last(cfg *recipe.Config) int { return g.at(cfg, cfg.Iterations) }

// at is the number of splats at a step. What gradients decide is taken to go along a straight line.
func (g growth) at(cfg *recipe.Config, step int) int {
	if step <= cfg.RefineStart || cfg.Refinements() == 0 {
		return g.first
	}
	if n := cfg.TargetSplats(g.first, g.ceiling, step); n > 0 {
		return n
	}
	share := float64(step-cfg.RefineStart) / float64(max(cfg.RefineStop-cfg.RefineStart, 1))
	return g.first + int(float64(g.guess-g.first)*min(share, 1))
}

// growthOf returns how the model of a run grows, by its photos and points. How far the strategy 3dgs grows without a
// number to end with is unknown; it is assumed to make the root of (pixels times points), more than the default recipe
// asks for.
func growthOf(cfg *recipe.Config, cams []scene.Camera, points, first, ceiling int) growth {
	if cfg.Strategy == recipe.StrategyMCMC && cfg.Splats > 0 {
		first = min(first, cfg.Splats) // it removes none, and leaves out what is too many
	}
	guess := min(max(first, recipe.SplatsFor(cams, points, 1)), ceiling)
	return growth{first: first, ceiling: ceiling, guess: guess}
}

// modelLike returns n splats that look about like s: each of them several times, at places inside of it, which let as
// much light through together, as MCMC divides them; or some of them. Their axes stay as long: splats of grown models
// have at least as many tiles each as the first ones.
func modelLike(s *scene.Splats, n int) *scene.Splats {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = int(int64(i) * int64(s.N) / int64(n))
	}
	out, share := s.Take(ids), min(1, float64(s.N)/float64(n))
	for i, id := range ids {
		light := math.Pow(1+math.Exp(float64(out.LogitOpacities[i])), -share) // 1 - opacity, of each
		out.LogitOpacities[i] = float32(math.Log((1 - light) / light))
		if i == 0 || ids[i-1] != id {
			continue
		}
		for k := range 3 {
			out.Means[3*i+k] += float32(math.Exp(float64(out.LogScales[3*i+k]))) * scatter(uint32(3*i+k))
		}
	}
	return out
}

// scatter returns a number from -1 to 1 that looks random.
func scatter(i uint32) float32 {
	i *= 2654435761
	i ^= i >> 15
	i *= 2246822519
	return float32(int32(i^i>>13)) / (1 << 31)
}
