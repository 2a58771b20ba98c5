package initial

import (
	"testing"

	"vksplat/scene"
)

// TestApart adds points to a grid of spacing 1: those that are at least a third of that from all others are kept.
func TestApart(t *testing.T) {
	var points []scene.Point
	for i := range 125 {
		points = append(points, scene.Point{Pos: [3]float64{float64(i % 5), float64(i / 5 % 5), float64(i / 25)}})
	}
	at := func(x, y, z float64) scene.Point { return scene.Point{Pos: [3]float64{x, y, z}} }
	more := []scene.Point{at(1, 1, 1), at(1.3, 1, 1), at(2.5, 2.5, 2.5), at(2.6, 2.5, 2.5), at(-3, 0, 0),
		at(1e300, 0, 0), at(-3.2, 0, 0), at(0.5, 0.5, 0)}
	got := Apart(points, more)
	want := []scene.Point{more[2], more[4], more[5], more[7]}
	if len(got) != len(want) {
		t.Fatalf("kept %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("kept %v, want %v", got[i], want[i])
		}
	}
	if got := Apart(points[:3], more); len(got) != len(more) {
		t.Errorf("beside three points %d of %d are kept", len(got), len(more))
	}
}
