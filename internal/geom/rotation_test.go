package geom

import (
	"math"
	"testing"
)

// TestRotationVector: vectors up to half a turn come back, small ones and none too, and the rotation is a quarter turn
// to the left about z for a vector of pi/2 along z.
func TestRotationVector(t *testing.T) {
	for _, v := range [][3]float64{{}, {1e-12, 0, -1e-12}, {0.01, -0.02, 0.03}, {1, 2, -2}, {-2.9, 0.5, 0.1},
		{0, 3, 0}} {
		back := VectorFromRotation(RotationFromVector(v))
		if d := Length(Sub(back, v)); d > 1e-12 {
			t.Errorf("%v comes back as %v", v, back)
		}
	}
	if p := Rotate(RotationFromVector([3]float64{0, 0, math.Pi / 2}), [3]float64{1, 0, 0}); Length(Sub(p,
		[3]float64{0, 1, 0})) > 1e-15 {
		t.Errorf("x becomes %v, want y", p)
	}
}
