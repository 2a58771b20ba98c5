package ref

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPhilox(t *testing.T) {
	// Known answers published with Random123 (philox4x32, 10 rounds).
	for _, c := range []struct {
		counter, want [4]uint32
		key           [2]uint32
	}{
		{[4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, [2]uint32{}},
		{[4]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}, [2]uint32{^uint32(0), ^uint32(0)}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}, [2]uint32{0xa4093822, 0x299f31d0}},
	} {
		if got := Philox(c.counter, c.key); got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestNormalPair(t *testing.T) {
	var sum, square float64
	const n = 20000
	for i := range uint32(n) {
		r := Philox([4]uint32{i}, [2]uint32{1, 2})
		a, b := normalPair[float32](r[0], r[1])
		sum += float64(a) + float64(b)
		square += float64(a)*float64(a) + float64(b)*float64(b)
	}
	if mean, variance := sum/(2*n), square/(2*n); math.Abs(mean) > 0.02 || math.Abs(variance-1) > 0.02 {
		t.Errorf("mean %g, variance %g", mean, variance)
	}
	for _, a := range []uint32{0, 1, 1 << 31, math.MaxUint32} {
		if x, y := normalPair[float32](a, a); !finite(x) || !finite(y) {
			t.Errorf("word %d: %g, %g", a, x, y)
		}
	}
}

// refineModel returns n splats with random actions ahead of them; the second moment of each logit opacity names the
// splat.
func refineModel(n int, seed uint64) *Model[float32] {
	r := rand.New(rand.NewPCG(seed, 0))
	p := NewParams[float32](n, 1)
	for _, tensor := range p.Tensors() {
		for i := range tensor.Data {
			tensor.Data[i] = float32(r.NormFloat64())
		}
	}
	m := NewModel(p)
	for i := range n {
		for k := range 3 {
			m.LogScales[3*i+k] = float32(-5 + r.NormFloat64())
		}
		m.LogitOpacities[i] = float32(-4 + 2*r.NormFloat64())
		m.Grad2D[i], m.Count[i] = float32(r.Float64())*4e-3, float32(r.IntN(12))
		m.V.LogitOpacities[i] = float32(i + 1)
	}
	return m
}

func testRefineConfig(n int) RefineConfig[float32] {
	return RefineConfig[float32]{GrowGrad2D: 2e-4, GrowScale: 0.01, PruneOpacity: 0.005, PruneScale: 0.05, Cap: n,
		Seed: 42, Step: 700}
}

func TestRefine(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 50, 500} {
		for _, ceiling := range []int{1 << 30, n + n/8, n, n / 2, 0} {
			for seed := range uint64(5) {
				checkRefine(t, refineModel(n, seed), testRefineConfig(ceiling))
			}
		}
	}
}

func TestRefineTarget(t *testing.T) {
	for _, n := range []int{1, 50, 500} {
		for _, target := range []int{1, n / 3, n - n/8, n, n + n/8, 3 * n} {
			for seed := range uint64(4) {
				c := testRefineConfig(1 << 30)
				c.Target = max(1, target)
				m := refineModel(n, seed)
				for i := range n {
					m.Count[i] = float32(i % 3)
				}
				plan := Classify(m, c)
				possible := plan.Alive
				for i, a := range plan.Actions {
					if a == Duplicate || a == Split {
						possible++
					}
					if grows := a == Duplicate || a == Split; grows && m.Count[i] == 0 {
						t.Fatalf("splat %d grows without a statistic", i)
					}
				}
				checkRefine(t, m, c)
				if want := min(c.Target, possible); m.N != want {
					t.Errorf("%d of %d splats live, %d wanted: %d left", plan.Alive, n, c.Target, m.N)
				}
			}
		}
	}
}

// TestRefineOrder requires that the highest scores grow, that the lowest opacities go, and that equals are taken by id.
func TestRefineOrder(t *testing.T) {
	m := NewModel(NewParams[float32](6, 0))
	for i := range 6 {
		copy(m.Quats[4*i:], []float32{1, 0, 0, 0})
		copy(m.LogScales[3*i:], []float32{-9, -9, -9})
		m.Grad2D[i], m.Count[i] = []float32{1, 3, 2, 3, 9, 2}[i], 1
		m.LogitOpacities[i] = []float32{5, 1, 2, 1, 4, 1}[i]
	}
	c := testRefineConfig(9)
	plan := Classify(m, c)
	plan.choose(nil)
	if want := []Action{Keep, Duplicate, Keep, Duplicate, Duplicate, Keep}; !slices.Equal(plan.Actions, want) {
		t.Errorf("growth by %v, want %v", plan.Actions, want)
	}
	c.Target = 4
	plan = Classify(m, c)
	plan.choose(func(i int) float64 { return float64(m.LogitOpacities[i]) })
	if want := []Action{Keep, Prune, Keep, Prune, Keep, Keep}; !slices.Equal(plan.Actions, want) {
		t.Errorf("pruning by %v, want %v", plan.Actions, want)
	}
}

func TestRevisedLogit(t *testing.T) {
	for _, x := range []float64{-79, -9, -1, 0, 2, 15} {
		o := Sigmoid(revisedLogit(x))
		if p := Sigmoid(x); math.Abs((1-(1-o)*(1-o))/p-1) > 1e-12*math.Exp(math.Abs(x)) {
			t.Errorf("two of opacity %g hide %g, want %g", o, 1-(1-o)*(1-o), p)
		}
		if a, b := revisedLogit(float32(x)), revisedLogit(x); math.Abs(float64(a)-b) > 1e-5*math.Max(1, math.Abs(b)) {
			t.Errorf("logit %g: %g, in float64 %g", x, a, b)
		}
	}
}

func checkRefine(t *testing.T, m *Model[float32], c RefineConfig[float32]) {
	t.Helper()
	old := NewModel(m.Params.Clone())
	old.V = *m.V.Clone()
	n := m.N
	plan := Refine(m, c)
	if m.N != plan.After || m.N != n-plan.Holes+plan.New || plan.New > 0 && m.N > c.Cap || len(m.SH) != 12*m.N ||
		m.V.N != m.N {
		t.Fatalf("n %d, plan %+v, model %d", n, plan, m.N)
	}
	if slices.Max(append(m.Grad2D, 0)) != 0 || slices.Max(append(m.Count, 0)) != 0 {
		t.Fatal("statistics survive")
	}
	// Every survivor that did not split is found unchanged with its moments, exactly once, at its own place if that
	// still exists.
	found := make([]int, n)
	fresh := 0
	for i := range m.N {
		id := int(m.V.LogitOpacities[i]) - 1
		if id < 0 {
			fresh++
			continue
		}
		found[id]++
		if id < m.N && id != i || m.LogScales[3*i] != old.LogScales[3*id] || m.SH[12*i+11] != old.SH[12*id+11] ||
			m.Means[3*i] != old.Means[3*id] {
			t.Fatalf("splat %d at %d is not what it was", id, i)
		}
	}
	grown, splits := 0, 0
	for i, a := range plan.Actions {
		grows := (a == Duplicate || a == Split) && grown < plan.New
		if grows {
			grown++
			if a == Split {
				splits++
			}
		}
		if want := a != Prune && !(grows && a == Split); want != (found[i] == 1) {
			t.Fatalf("splat %d, action %d: found %d times", i, a, found[i])
		}
	}
	if fresh != plan.New+splits {
		t.Fatalf("%d splats without moments, want %d new and %d first children", fresh, plan.New, splits)
	}
}

func TestRefineSplit(t *testing.T) {
	// Splat 0 is pruned, 1 splits, 2 is duplicated, 3 is kept: child B goes to hole 0, the copy to place 4.
	m := NewModel(NewParams[float32](4, 0))
	for i := range 4 {
		copy(m.Quats[4*i:], []float32{2, 0, 0, 0})
		m.Means[3*i] = float32(10 * i)
		m.V.Means[3*i] = 1
		for k := range 3 {
			m.LogScales[3*i+k] = -6
		}
	}
	m.LogitOpacities[0] = -9
	m.LogScales[3], m.LogScales[4], m.LogScales[5] = -1, -20, -20
	m.Grad2D[1], m.Grad2D[2], m.Count[1] = 1, 1, 3
	Refine(m, testRefineConfig(100).withPruneScale(0))
	if m.N != 5 {
		t.Fatalf("%d splats", m.N)
	}
	a, b := m.Means[3], m.Means[0]
	if a == b || a == 10 || math.Abs(float64(a)-10) > 2 || math.Abs(float64(b)-10) > 2 {
		t.Errorf("children at %g and %g", a, b)
	}
	if got := m.LogScales[0]; math.Abs(float64(got)+1+math.Log(1.6)) > 1e-6 {
		t.Errorf("child log scale %g", got)
	}
	if m.Means[12] != 20 || m.V.Means[12] != 0 || m.V.Means[6] != 1 || m.V.Means[3] != 0 || m.V.Means[9] != 1 {
		t.Errorf("copy or moments wrong: means %v moments %v", m.Means, m.V.Means)
	}
}

func (c RefineConfig[T]) withPruneScale(s T) RefineConfig[T] {
	c.PruneScale = s
	return c
}

func TestResetOpacity(t *testing.T) {
	m := refineModel(9, 3)
	ceiling := float32(math.Log(0.01 / 0.99))
	ResetOpacity(m, ceiling)
	if slices.Max(m.LogitOpacities) > ceiling || slices.Max(m.V.LogitOpacities) != 0 {
		t.Errorf("logit opacities %v, moments %v", m.LogitOpacities, m.V.LogitOpacities)
	}
}
