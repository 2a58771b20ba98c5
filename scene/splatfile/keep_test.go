package splatfile

import (
	"math"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// TestKeep: by where splats are in the capture, whatever was subtracted from the file's coordinates; what nothing can
// draw goes in any case.
func TestKeep(t *testing.T) {
	const n = 2*PieceSplats + 5
	s := scene.NewSplats(n, 1)
	for i := range n {
		s.Means[3*i], s.Quats[4*i] = float32(i), 1
	}
	s.LogScales[3*100] = float32(math.NaN())
	model := Memory(s, ply.Meta{Origin: &[3]float64{1000, 0, 0}})
	kept := must.Get(Keep(model, func(at [3]float64) bool { return int(at[0])%2 == 0 && at[0] >= 1000+50 }))(t)
	got := must.Get(All(kept))(t)
	want := (n-50+1)/2 - 1
	if got.N != want || kept.Info().N != want {
		t.Fatalf("%d splats, said %d, want %d", got.N, kept.Info().N, want)
	}
	next := float32(50)
	for i := range got.N {
		if next == 100 {
			next += 2
		}
		if got.Means[3*i] != next {
			t.Fatalf("splat %d is at %g, want %g", i, got.Means[3*i], next)
		}
		next += 2
	}
	if none, err := Keep(model, func([3]float64) bool { return false }); err != nil || none.Info().N != 0 {
		t.Errorf("%v, %v of none", none.Info().N, err)
	}
}
