package ref

import (
	"math"
	"math/bits"

	"vksplat/shaders/layout"
)

// twin: mcmc_plan mcmc_weigh mcmc_draw mcmc_place mcmc_update

type MCMCConfig[T Real] struct {
	PruneOpacity T   // opacity up to which a splat is dead, and the least that a copy gets
	Target       int // splats to end with; fewer than there are: none is added
	Seed         uint64
	Step         uint32
}

// MCMCPlan says how many splats there will be.
func MCMCPlan(n, target, ceiling int) (after int) {
	if n == 0 {
		return 0
	}
	return max(n, min(target, ceiling))
}

// Weigh returns each splat's share of the draws in fixed point, and which splats are dead. In the round of growth only
// what is no number is dead.
func Weigh[T Real](m *Model[T], c MCMCConfig[T], round uint32) (weights []uint32, dead []bool) {
	weights, dead = make([]uint32, m.N), make([]bool, m.N)
	for i := range m.N {
		o := Sigmoid(m.LogitOpacities[i])
		dead[i] = !m.isFinite(i) || round == layout.RoundRelocate && o <= c.PruneOpacity
		if dead[i] {
			continue
		}
		weights[i] = fixedPoint(float64(o)*weightUnit(m.N), uint32(i), c.Step, c.Seed, round)
	}
	return weights, dead
}

// weightUnit returns the weight of an opacity of 1: the largest power of two, up to 2^24, for which n of them sum up to
// less than 2^31.
func weightUnit(n int) float64 { return math.Ldexp(1, min(24, 31-bits.Len(uint(n)))) }

// fixedPoint rounds x up or down at random, so that it is x on average.
func fixedPoint(x float64, id, step uint32, seed uint64, round uint32) uint32 {
	r := Philox([4]uint32{id, step, layout.DrawWeight + round, 0}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	w := uint32(x)
	if float64(r[0]>>8)/(1<<24) < x-math.Floor(x) {
		w++
	}
	return w
}

// DrawSources draws the source of each copy, with probabilities in proportion to the weights, and counts how often each
// splat is drawn. homes are the ids that the copies get. Without any weight relocation draws nothing and growth
// anything.
func DrawSources(weights, homes []uint32, seed uint64, step, round uint32) (sources, multiplicity []uint32) {
	sources, multiplicity = make([]uint32, len(homes)), make([]uint32, len(weights))
	sums, total := Scan(weights)
	for k, home := range homes {
		if total == 0 && round == layout.RoundRelocate {
			sources[k] = layout.NoSource
			continue
		}
		r := Philox([4]uint32{home, step, layout.DrawSource + round, 0}, [2]uint32{uint32(seed), uint32(seed >> 32)})
		if total == 0 {
			sources[k], _ = bits.Mul32(r[0], uint32(len(weights)))
		} else {
			draw, _ := bits.Mul32(r[0], uint32(total))
			at := 0
			for i, w := range weights {
				if w > 0 && sums[i] <= draw {
					at = i
				}
			}
			sources[k] = uint32(at)
		}
		multiplicity[sources[k]]++
	}
	return sources, multiplicity
}

// CopySources writes the copies to their homes and makes what was drawn one of its own copies. Copies have no moments
// and no statistics; a relocation forgets the moments of the drawn too.
func CopySources[T Real](m *Model[T], homes, sources, multiplicity []uint32, c MCMCConfig[T], round uint32) {
	old := m.Params.Clone()
	zero := NewParams[T](1, m.Degree)
	become := func(to, from int) {
		logit, shift := relocateStored(old.LogitOpacities[from], int(multiplicity[from])+1, c.PruneOpacity)
		m.LogitOpacities[to] = logit
		for k := range 3 {
			m.LogScales[3*to+k] = old.LogScales[3*from+k] + shift
		}
	}
	for k, home := range homes {
		if sources[k] == layout.NoSource {
			continue
		}
		to, from := int(home), int(sources[k])
		m.copySplat(to, old, from)
		become(to, from)
		m.M.copySplat(to, zero, 0)
		m.V.copySplat(to, zero, 0)
		m.Grad2D[to], m.Count[to] = 0, 0
	}
	for i, drawn := range multiplicity {
		if drawn == 0 {
			continue
		}
		become(i, i)
		if round == layout.RoundRelocate {
			m.M.copySplat(i, zero, 0)
			m.V.copySplat(i, zero, 0)
		}
	}
}

// Relocate returns the opacity and the scales (both activated) that n copies of a splat must have to look like the
// splat did (3DGS-MCMC, Kheradmand et al. 2024, eq. 9). rest is 1 - opacity, which may have more digits by itself. The
// new opacity is at least floor; n is clamped.
func Relocate[T Real](opacity, rest T, scales [3]T, n int, floor T) (T, [3]T) {
	n = min(max(n, 1), layout.MaxRelocations)
	o := 1 - pow(rest, 1/T(n))
	// Written so that a NaN fails it.
	if !(o >= floor) {
		o = floor
	}
	// sum_{i=1..n} sum_{k<i} C(i-1, k) (-1)^k o^(k+1) / sqrt(k+1), the sum over i being C(n, k+1).
	var denominator T
	power := o
	for k := range n {
		term := T(binomial(n, k+1)) * power / sqrt(T(k+1))
		if k%2 == 1 {
			term = -term
		}
		denominator += term
		power *= o
	}
	f := opacity / denominator
	return o, [3]T{scales[0] * f, scales[1] * f, scales[2] * f}
}

// binomial returns n over k, exact below 2^53.
func binomial(n, k int) float64 {
	c := 1.0
	for j := 1; j <= k; j++ {
		c = c * float64(n-k+j) / float64(j)
	}
	return c
}

// relocateStored is Relocate for stored values: the logit opacity of each copy, and what to add to the log scales.
func relocateStored[T Real](logit T, copies int, floor T) (T, T) {
	const least, most = layout.OpacityMargin, 1 - layout.OpacityMargin
	opacity, rest := min(max(Sigmoid(logit), least), most), min(max(Sigmoid(-logit), least), most)
	o, s := Relocate(opacity, rest, [3]T{1, 1, 1}, copies, floor)
	o = min(o, most)
	return log(o / (1 - o)), log(s[0])
}
