package ref

import "testing"

// TestIsFloater has cameras on opposite sides of a scene of radius 1: one with a splat right in front of it, the others
// look at that splat through the scene.
func TestIsFloater(t *testing.T) {
	camera := Voter[float64]{
		View: View[float64]{R: [9]float64{0: 1, 4: 1, 8: 1}, T: [3]float64{0, 0, 4}, Fx: 50, Fy: 50, Cx: 32, Cy: 24,
			Width: 64, Height: 48},
		Empty: 2, Median: 4,
	}
	across := camera
	across.R = [9]float64{-1, 0, 0, 0, 1, 0, 0, 0, -1}
	blind := across
	blind.Empty, blind.Median = 0, 0
	all := across
	all.Median = 100
	for _, c := range []struct {
		name   string
		mean   [3]float64
		scale  float64
		voters []Voter[float64]
		want   bool
	}{
		{"in front of one", [3]float64{0, 0, -3}, 0.1, []Voter[float64]{camera, across, across}, true},
		{"in front of one, the others know what is there", [3]float64{0, 0, -3}, 0.1,
			[]Voter[float64]{camera, all, all}, false},
		{"half of those that can tell", [3]float64{0, 0, -3}, 0.1, []Voter[float64]{camera, all, across}, true},
		{"in the scene", [3]float64{0, 0, 0}, 0.1, []Voter[float64]{camera, across}, false},
		{"behind what all know", [3]float64{0, 0, 1}, 0.1, []Voter[float64]{camera}, false},
		{"in no picture", [3]float64{0, 9, -3}, 0.1, []Voter[float64]{camera, across}, false},
		{"seen by who knows nothing", [3]float64{0, 0, -3}, 0.1, []Voter[float64]{blind}, false},
		{"larger than its distance", [3]float64{0, 0, 0}, 4.1, []Voter[float64]{camera, across}, true},
		{"smaller", [3]float64{0, 0, 0}, 3.9, []Voter[float64]{camera, across}, false},
	} {
		if got := IsFloater(c.mean, c.scale, c.voters); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
