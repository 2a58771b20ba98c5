package scene

import (
	"math"
	"testing"

	"vksplat/scene/lenstest"
)

// Looking at every pixel of the border changes nothing.
func TestBorderFindsInnermost(t *testing.T) {
	for i, c := range lenstest.All {
		o := mustOptics(t, Calibration{Model: LensModel(c.Model), Width: 800, Height: 1000, Params: c.Params}, 800,
			1000)
		if o.Plane == NoPlane {
			continue
		}
		want := border{math.Inf(-1), math.Inf(1), math.Inf(-1), math.Inf(1), 0}
		look := func(x, y float64, axis int, update func(c float64)) {
			e := edge{o: o, axis: axis, at: func(int) (float64, float64) { return x, y }}
			if c, ok := e.look(0); ok {
				update(c)
			}
		}
		for y := 0.5; y < 1000; y++ {
			look(0.5, y, 0, func(c float64) { want.left = max(want.left, c) })
			look(799.5, y, 0, func(c float64) { want.right = min(want.right, c) })
		}
		for x := 0.5; x < 800; x++ {
			look(x, 0.5, 1, func(c float64) { want.top = max(want.top, c) })
			look(x, 999.5, 1, func(c float64) { want.bottom = min(want.bottom, c) })
		}
		b := o.Border()
		for k, pair := range [][2]float64{{b.left, want.left}, {b.right, want.right}, {b.top, want.top},
			{b.bottom, want.bottom}} {
			if pair[0] != pair[1] && !(math.Abs(pair[0]-pair[1]) < 1e-6*math.Abs(pair[1])) {
				t.Errorf("%s: side %d: %v, want %v", lensName(i), k, pair[0], pair[1])
			}
		}
	}
}
