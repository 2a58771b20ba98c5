package scene_test

import (
	"math"
	"testing"

	"vksplat/internal/geom"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

// TestNearestTo: the least angle and the least distance may be those of different cameras, whatever the capture's unit
// and origin.
func TestNearestTo(t *testing.T) {
	camera := func(name string, eye, target geom.Vec) scene.Camera {
		c := scene.Camera{Name: name}
		scene.LookAt(&c, eye, target)
		return c
	}
	for _, scale := range []float64{1, 1000} {
		at := func(x, y float64) geom.Vec { return geom.Vec{7 + x, y, 3}.Mul(scale) }
		// four on a circle of radius 2 that look at its middle
		train := []scene.Camera{camera("a", at(2, 0), at(0, 0)), camera("b", at(0, 2), at(0, 0)),
			camera("c", at(-2, 0), at(0, 0)), camera("d", at(0, -2), at(0, 0))}
		sin, cos := math.Sincos(math.Pi / 18)
		got := scene.NearestTo(train, []scene.Camera{camera("turned", at(2, 0), at(2+sin, cos)), train[2],
			camera("between", at(3*cos, 3*sin), at(0, 0))})
		for name, want := range map[string]scene.Nearest{
			"turned":  {Degrees: 10, Distance: 0}, // where a stands, nearly the direction of d
			"c":       {},
			"between": {Degrees: 10, Distance: math.Hypot(3*cos-2, 3*sin) / 2},
		} {
			if n := got[name]; !scenetest.Near(n.Degrees, want.Degrees, 1e-9) ||
				!scenetest.Near(n.Distance, want.Distance, 1e-9) {
				t.Errorf("%s: %+v, want %+v", name, n, want)
			}
		}
	}
	one := []scene.Camera{camera("a", geom.Vec{}, geom.Vec{1, 0, 0})}
	beside := []scene.Camera{camera("b", geom.Vec{0, 3, 0}, geom.Vec{0, 4, 0})}
	if n := scene.NearestTo(one, beside)["b"]; n.Distance != 3 {
		t.Errorf("one training camera: %+v", n)
	}
}
