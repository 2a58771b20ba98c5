package scene

import (
	"math"
	"testing"
)

func TestFarthest(t *testing.T) {
	s := NewSplats(2, 0)
	copy(s.Means, []float32{0, 0, 0, 3, 4, 12})
	id := [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}
	cams := []Camera{{R: id}, {R: id, T: [3]float64{-3, -4, -12}}, {R: id, T: [3]float64{-1, -1, -1}}}
	if got := Farthest(cams[:1], s); math.Abs(got-13) > 1e-12 {
		t.Errorf("from the origin: %g, want 13", got)
	}
	if got := Farthest(cams[1:2], s); math.Abs(got-13) > 1e-12 {
		t.Errorf("from the far corner: %g, want 13", got)
	}
	if got := Farthest(cams[2:], s); got >= 13 || got < math.Sqrt(2*2+3*3+11*11) {
		t.Errorf("from within: %g", got)
	}
}
