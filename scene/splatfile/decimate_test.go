package splatfile

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// TestDecimate wants the number that was asked for, of any model, the same splats on any number of cores and from any
// kind of source, and as much light held back as before.
func TestDecimate(t *testing.T) {
	for _, c := range []struct{ n, to int }{{2, 1}, {3, 2}, {1000, 1}, {5000, 4999}, {5000, 2500},
		{2*decimateBlock + 77, 30000}} {
		m := model(c.n, 1)
		d := must.Get(Decimate(Memory(m, ply.Meta{Near: 0.5}), c.to, t.TempDir(), nil))(t)
		s := must.Get(All(d))(t)
		if s.N != c.to || d.Info().N != c.to || d.Info().Meta.Near != 0.5 {
			t.Errorf("%d became %d of %d, %+v", c.n, s.N, c.to, d.Info())
		}
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		if before, after := covered(m), covered(s); c.to > c.n/4 && math.Abs(after/before-1) > 0.05 {
			t.Errorf("%d splats hold back %g, %d of them %g", c.n, before, c.to, after)
		}
	}
	for _, n := range []int{0, 10, 11} {
		if _, err := Decimate(Memory(model(10, 0), ply.Meta{}), n, t.TempDir(), nil); err == nil {
			t.Errorf("10 splats became %d", n)
		}
	}
	broken := model(10, 0)
	broken.Means[5] = float32(math.NaN())
	if _, err := Decimate(Memory(broken, ply.Meta{}), 5, t.TempDir(), nil); err == nil {
		t.Error("a splat without a place is merged")
	}
}

// covered is optical depth times area of all splats.
func covered(s *scene.Splats) (sum float64) {
	for i := range s.N {
		sum += -math.Log1p(-min(sigmoid(s.LogitOpacities[i]), 0.99)) * meanArea(s.LogScales[3*i:3*i+3])
	}
	return sum
}

// sequential hides that a model can be read in any order.
type sequential struct{ Source }

func TestDecimateIsTheSame(t *testing.T) {
	m := model(decimateBlock+5000, 2)
	written := func(from Source) []byte {
		d := must.Get(Decimate(from, 20000, t.TempDir(), nil))(t)
		path := filepath.Join(t.TempDir(), "a.ply")
		must.Get(plainPLY.Write(path, d, WriteOptions{}))(t)
		must.Do(t, d.Close())
		b := must.Get(os.ReadFile(path))(t)
		return b
	}
	want := written(Memory(m, ply.Meta{}))
	spooled := must.Get(newSpool(Memory(m, ply.Meta{}), t.TempDir()))(t)
	defer spooled.Close()
	cores := runtime.GOMAXPROCS(1)
	alone := written(sequential{Memory(m, ply.Meta{})})
	runtime.GOMAXPROCS(cores)
	if !bytes.Equal(alone, want) || !bytes.Equal(written(spooled), want) {
		t.Error("the bytes differ")
	}
}

// TestDecimateFinds wants splats that were split in two to become what they were.
func TestDecimateFinds(t *testing.T) {
	m := model(3000, 1)
	twice := must.Get(All(must.Get(Merge([]Source{Memory(m, ply.Meta{}), Memory(m, ply.Meta{})}))(t)))(t)
	for i := range twice.N { // half the optical depth
		opacity := 1 - math.Sqrt(1-min(sigmoid(twice.LogitOpacities[i]), 0.99))
		twice.LogitOpacities[i] = logit(opacity)
	}
	d := must.Get(Decimate(Memory(twice, ply.Meta{}), m.N, t.TempDir(), nil))(t)
	got := must.Get(All(d))(t)
	found := 0
	for i := range m.N {
		for j := range got.N {
			if slices.Equal(got.Means[3*j:3*j+3], m.Means[3*i:3*i+3]) {
				found++
				break
			}
		}
	}
	if found < m.N*95/100 {
		t.Errorf("%d of %d splats came back", found, m.N)
	}
}
