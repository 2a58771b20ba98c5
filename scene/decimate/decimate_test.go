package decimate

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// cloud is n splats of degree 1, anywhere in a box.
func cloud(n int) *scene.Splats {
	r := rand.New(rand.NewPCG(3, 4))
	s := scene.NewSplats(n, 1)
	for i := range n {
		for k := range 3 {
			s.Means[3*i+k] = float32(10 * r.Float64())
			s.LogScales[3*i+k] = float32(-1.5 + 0.5*r.NormFloat64())
		}
		for k := range 4 {
			s.Quats[4*i+k] = float32(r.NormFloat64())
		}
		s.LogitOpacities[i] = float32(r.NormFloat64())
	}
	for i := range s.SH {
		s.SH[i] = float32(0.3 * r.NormFloat64())
	}
	return s
}

// field is optical depth, and that times colour, of splats at a place, with axes that are that much thicker.
func field(list []gaussian, at [3]float64, thick float64) (f [4]float64) {
	for i := range list {
		g := list[i]
		for _, k := range [3]int{0, 3, 5} {
			g.cov[k] += thick
		}
		a := g.depth * math.Exp(-distance2(&g.cov, det(&g.cov, 0), geom.Sub(at, g.mean))/2)
		f[0] += a
		for k := range 3 {
			f[1+k] += a * g.colour[k]
		}
	}
	return f
}

// TestCost compares costs with the integral over a grid.
func TestCost(t *testing.T) {
	s := cloud(12)
	for i := range s.Means {
		s.Means[i] = 0.1 * s.Means[i]
	}
	for i := 0; i+1 < s.N; i += 2 {
		a, b := gaussianOf(s, i), gaussianOf(s, i+1)
		m, _ := merged(&a, &b)
		thick := blur * blur * min(a.trace(), b.trace())
		const from, to, steps = -2.5, 3.5, 60
		const h = (to - from) / steps
		sum := 0.0
		for cell := range steps * steps * steps {
			at := [3]float64{from + h*float64(cell%steps), from + h*float64(cell/steps%steps),
				from + h*float64(cell/steps/steps)}
			two, one := field([]gaussian{a, b}, at, thick), field([]gaussian{m}, at, thick)
			for k := range two {
				sum += (two[k] - one[k]) * (two[k] - one[k]) * h * h * h
			}
		}
		want := sum / math.Pow(2*math.Pi, 1.5) / math.Sqrt(m.trace()+thick)
		if got := cost(&a, &b); math.Abs(got-want) > 0.02*want+1e-9 {
			t.Errorf("pair %d costs %g, the grid says %g", i/2, got, want)
		}
	}
}

// TestMergeMoments wants the mean and the covariance of both splats in the one that they become, and its rotation,
// scales and opacity to say these.
func TestMergeMoments(t *testing.T) {
	s := cloud(20)
	into := scene.NewSplats(1, 1)
	for i := 0; i+1 < s.N; i += 2 {
		Merge(s, i, i+1, into, 0)
		a, b, m := gaussianOf(s, i), gaussianOf(s, i+1), gaussianOf(into, 0)
		wa, wb := a.weight(), b.weight()
		for k := range 3 {
			want := (wa*a.mean[k] + wb*b.mean[k]) / (wa + wb)
			if math.Abs(m.mean[k]-want) > 1e-5 {
				t.Errorf("mean %v", m.mean)
			}
		}
		at := 0
		for row := range 3 {
			for col := row; col < 3; col++ {
				second := func(g *gaussian) float64 { return g.cov[at] + g.mean[row]*g.mean[col] }
				if want := (wa*second(&a) + wb*second(&b)) / (wa + wb); math.Abs(second(&m)-want) > 1e-3*(1+want) {
					t.Errorf("second moment %d is %g, want %g", at, second(&m), want)
				}
				at++
			}
		}
		if want := min((wa+wb)/m.area(), a.depth+b.depth); math.Abs(m.depth-want) > 1e-3*want {
			t.Errorf("optical depth %g of %g and %g, want %g", m.depth, a.depth, b.depth, want)
		}
		for k := range 12 {
			want := (wa*float64(s.SH[12*i+k]) + wb*float64(s.SH[12*i+12+k])) / (wa + wb)
			if math.Abs(float64(into.SH[k])-want) > 1e-5 {
				t.Errorf("coefficient %d is %g, want %g", k, into.SH[k], want)
			}
		}
	}
}

// TestMergeTwins wants two halves of a splat to become it: what was split is found, and costs nothing.
func TestMergeTwins(t *testing.T) {
	s := cloud(2)
	for _, tensor := range s.Tensors() {
		copy(tensor.At(1), tensor.At(0))
	}
	a := gaussianOf(s, 0)
	if c := cost(&a, &a); c > 1e-9 {
		t.Errorf("twins cost %g", c)
	}
	into := scene.NewSplats(1, 1)
	Merge(s, 0, 1, into, 0)
	m := gaussianOf(into, 0)
	if math.Abs(m.depth-2*a.depth) > 1e-5 {
		t.Errorf("optical depth %g, want %g", m.depth, 2*a.depth)
	}
	for k := range m.cov {
		if math.Abs(m.cov[k]-a.cov[k]) > 1e-5 {
			t.Errorf("covariance %v, want %v", m.cov, a.cov)
		}
	}
}

// TestPairs wants pairs to ascend, to be disjoint, to be the same on any number of cores, and twins among them first.
func TestPairs(t *testing.T) {
	s := cloud(5000)
	for _, tensor := range s.Tensors() {
		copy(tensor.At(4321), tensor.At(77))
	}
	got := Pairs(s)
	if !slices.ContainsFunc(got[:len(got)/100], func(p Pair) bool { return p.A == 77 && p.B == 4321 }) {
		t.Error("two splats in one place are not merged early")
	}
	taken := map[uint32]bool{}
	for i, p := range got {
		if p.A >= p.B || taken[p.A] || taken[p.B] || i > 0 && p.Cost < got[i-1].Cost || !(p.Cost >= 0) {
			t.Fatalf("pair %d is %+v", i, p)
		}
		taken[p.A], taken[p.B] = true, true
	}
	if len(got) < s.N/4 {
		t.Errorf("%d pairs of %d splats", len(got), s.N)
	}
	cores := runtime.GOMAXPROCS(1)
	alone := Pairs(s)
	runtime.GOMAXPROCS(cores)
	if !slices.Equal(alone, got) {
		t.Error("one core finds other pairs")
	}
	if few := Pairs(cloud(1)); len(few) != 0 {
		t.Errorf("pairs of one splat: %v", few)
	}
	if few := Pairs(cloud(2)); len(few) != 1 {
		t.Errorf("pairs of two splats: %v", few)
	}
}

// TestPairsInOnePlace wants splats in one place to find others than the same few, so that one round merges many.
func TestPairsInOnePlace(t *testing.T) {
	s := scene.NewSplats(1000, 0)
	for i := range s.N {
		s.Quats[4*i] = 1
	}
	if n := len(Pairs(s)); n < 250 {
		t.Errorf("%d pairs of 1000 splats", n)
	}
}
