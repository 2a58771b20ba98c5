package ref

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vksplat/shaders/layout"
)

// TestWeighUnbiased weighs with few bits: the mean over many draws must be the opacity all the same.
func TestWeighUnbiased(t *testing.T) {
	// With 2^22 splats a weight has 8 bits, with 2^30 none: imitated by what such weights are made of.
	m := NewModel(NewParams[float32](1, 0))
	m.LogitOpacities[0] = -2
	want := float64(Sigmoid(m.LogitOpacities[0]))
	for _, bits := range []int{0, 3, 8} {
		unit := math.Ldexp(1, bits)
		sum, n := 0.0, 40000
		for step := range n {
			w := fixedPoint(want*unit, 0, uint32(step), 9, layout.RoundGrow)
			if f := float64(w); f < math.Floor(want*unit) || f > math.Ceil(want*unit) {
				t.Fatalf("%g is weighed %d", want*unit, w)
			}
			sum += float64(w) / unit / float64(n)
		}
		if math.Abs(sum-want) > 3*math.Sqrt(0.25/float64(n))/unit {
			t.Errorf("%d bits: mean %g, want %g", bits, sum, want)
		}
	}
}

// TestWeighSum requires that sums stay below 2^31 however many splats of opacity 1 there are.
func TestWeighSum(t *testing.T) {
	for _, n := range []int{1, 2, 3, 255, 256, 1 << 20, 1<<20 + 1, 1<<30 - 1, 1 << 30} {
		if sum := float64(n) * weightUnit(n); sum >= 1<<31 || weightUnit(n) < 1 {
			t.Errorf("%d splats: unit %g, sum %g", n, weightUnit(n), sum)
		}
	}
}

// TestDrawSources draws often and compares frequencies with weights.
func TestDrawSources(t *testing.T) {
	weights := []uint32{0, 100, 0, 300, 600, 0}
	homes := make([]uint32, 60000)
	for k := range homes {
		homes[k] = uint32(6 + k)
	}
	sources, drawn := DrawSources(weights, homes, 1, 2, layout.RoundGrow)
	for i, w := range weights {
		if got, want := float64(drawn[i])/float64(len(homes)), float64(w)/1000; math.Abs(got-want) > 0.01 || w == 0 &&
			drawn[i] != 0 {
			t.Errorf("splat %d: drawn with frequency %g, want %g", i, got, want)
		}
	}
	other, _ := DrawSources(weights, homes, 1, 3, layout.RoundGrow)
	if slices.Equal(sources, other) {
		t.Error("the same draws at another step")
	}
}

// TestRelocateStored requires that float32 keeps up with float64 for every opacity and number of copies, where the sum
// of equation 9 cancels most.
func TestRelocateStored(t *testing.T) {
	for _, logit := range []float64{-200, -20, -5.3, -2, 0, 2, 8, 15, 16, 17, 40, 200} {
		for _, n := range []int{1, 2, 3, 10, 50, 51, 52, 1 << 30} {
			a, b := relocateStored(float32(logit), n, 0.005)
			x, y := relocateStored(logit, n, 0.005)
			if !(math.Abs(float64(a)-x) < 2e-3*math.Max(1, math.Abs(x))) || !(math.Abs(float64(b)-y) < 2e-2) ||
				logit > -5 && (y > 1e-5 || y < -3) || y < -15 {
				t.Errorf("logit %g, %d copies: %g and %g, in float64 %g and %g", logit, n, a, b, x, y)
			}
		}
	}
}

// TestRefineMCMC requires the numbers of splats, that none is dead, and that what was not drawn is as it was.
func TestRefineMCMC(t *testing.T) {
	for _, target := range []int{0, 500, 525, 1500} {
		m := refineModel(500, 3)
		old := NewModel(m.Params.Clone())
		RefineMCMC(m, MCMCConfig[float32]{PruneOpacity: 0.005, Target: target, Seed: 42, Step: 700})
		if m.N != max(500, target) {
			t.Fatalf("%d splats, want %d", m.N, target)
		}
		same := 0
		for i := range m.N {
			if o := Sigmoid(m.LogitOpacities[i]); o < 0.00499 || o >= 1 {
				t.Errorf("splat %d has opacity %g", i, o)
			}
			if i < 500 && m.Means[3*i] == old.Means[3*i] && m.LogitOpacities[i] == old.LogitOpacities[i] {
				same++
			}
		}
		if same == 0 || same == 500 {
			t.Errorf("%d of 500 splats are as they were", same)
		}
	}
}

// TestExplore requires noise of the covariance's shape, for faint splats alone.
func TestExplore(t *testing.T) {
	const n = 20000
	p := NewParams[float64](n, 0)
	for i := range n {
		copy(p.Quats[4*i:], []float64{1, 0, 0, 1}) // a quarter turn about z: the splat's x is the world's y
		copy(p.LogScales[3*i:], []float64{math.Log(2), math.Log(0.5), math.Log(0.1)})
		p.LogitOpacities[i] = -20
	}
	p.LogitOpacities[0] = 0
	Explore(p, 10, nil, 1, 2)
	var square [3]float64
	for i := 1; i < n; i++ {
		for k := range square {
			square[k] += p.Means[3*i+k] * p.Means[3*i+k] / n
		}
	}
	gate := 10 / (1 + math.Exp(-0.5))
	for k, cov := range []float64{0.25, 4, 0.01} {
		if got := math.Sqrt(square[k]); math.Abs(got/(cov*gate)-1) > 0.03 {
			t.Errorf("axis %d: deviation %g, want %g", k, got, cov*gate)
		}
	}
	if math.Abs(p.Means[0]) > 1e-12 {
		t.Errorf("an opaque splat moved by %g", p.Means[0])
	}
}

// TestPenalise compares with central differences of the penalties themselves.
func TestPenalise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := NewParams[float64](7, 0)
	for i := range p.LogScales {
		p.LogScales[i] = r.NormFloat64()
	}
	for i := range p.LogitOpacities {
		p.LogitOpacities[i] = r.NormFloat64()
	}
	w := Penalties{Opacity: 0.3, Scale: 0.7}
	loss := func() (sum float64) {
		for _, x := range p.LogitOpacities {
			sum += w.Opacity * Sigmoid(x) / 7
		}
		for _, x := range p.LogScales {
			sum += w.Scale * math.Exp(x) / 21
		}
		return sum
	}
	g := NewParams[float64](7, 0)
	Penalise(g, p, w, nil)
	for k, data := range [][]float64{p.LogitOpacities, p.LogScales} {
		got := [][]float64{g.LogitOpacities, g.LogScales}[k]
		for i := range data {
			x := data[i]
			data[i] = x + 1e-5
			up := loss()
			data[i] = x - 1e-5
			down := loss()
			data[i] = x
			if want := (up - down) / 2e-5; math.Abs(got[i]-want) > 1e-8 {
				t.Errorf("tensor %d, element %d: %g, want %g", k, i, got[i], want)
			}
		}
	}
}

// RefineMCMC runs one refinement on a model that is large enough: the dead are put in the place of the living, then
// splats are added.
func RefineMCMC[T Real](m *Model[T], c MCMCConfig[T]) {
	n := m.N
	weights, dead := Weigh(m, c, layout.RoundRelocate)
	var homes []uint32
	for i, d := range dead {
		if d {
			homes = append(homes, uint32(i))
		}
	}
	sources, drawn := DrawSources(weights, homes, c.Seed, c.Step, layout.RoundRelocate)
	CopySources(m, homes, sources, drawn, c, layout.RoundRelocate)

	after := MCMCPlan(n, c.Target, math.MaxInt32)
	weights, _ = Weigh(m, c, layout.RoundGrow)
	m.extend(after)
	homes = homes[:0]
	for i := n; i < after; i++ {
		homes = append(homes, uint32(i))
	}
	sources, drawn = DrawSources(weights, homes, c.Seed, c.Step, layout.RoundGrow)
	CopySources(m, homes, sources, drawn, c, layout.RoundGrow)
}

// extend makes room for n splats.
func (m *Model[T]) extend(n int) {
	more := NewModel(NewParams[T](n, m.Degree))
	for i := range m.N {
		more.copySplat(i, &m.Params, i)
		more.M.copySplat(i, &m.M, i)
		more.V.copySplat(i, &m.V, i)
		more.Grad2D[i], more.Count[i] = m.Grad2D[i], m.Count[i]
	}
	*m = *more
}
