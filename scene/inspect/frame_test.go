package inspect

import (
	"math"
	"slices"
	"testing"

	"vksplat/scene"
)

// around makes cameras at a distance of 3 around the origin, which look at it, and points within half a unit of that.
func around(scale float64) (cams []scene.Camera, points []scene.Point) {
	for i := range 8 {
		sin, cos := math.Sincos(float64(i) * math.Pi / 4)
		cams = append(cams, scene.Camera{Width: 64, Height: 48, Fx: 60, Fy: 60, Cx: 32, Cy: 24,
			R: [9]float64{cos, 0, -sin, 0, 1, 0, sin, 0, cos}, T: [3]float64{0, 0, 3}})
	}
	for i := range 8000 {
		points = append(points, scene.Point{Pos: [3]float64{scale * (float64(i%20)/20 - 0.475),
			scale * (float64(i/20%20)/20 - 0.475), scale * (float64(i/400)/20 - 0.475)}})
	}
	return cams, points
}

// TestOtherFrame wants points of another origin, or of another scale, to be told from those of the capture's frame, and
// a scan of another part of the scene to be none of these.
func TestOtherFrame(t *testing.T) {
	cams, own := around(1)
	shifted := func(points []scene.Point, by [3]float64) []scene.Point {
		points = slices.Clone(points)
		for i := range points {
			for k := range by {
				points[i].Pos[k] += by[k]
			}
		}
		return points
	}
	_, large := around(2000)
	_, small := around(0.001)
	_, coarse := around(3)
	every := func(points []scene.Point, n int) (some []scene.Point) { // fewer than cameras need to see for much else
		for i := 0; i < len(points); i += len(points) / n {
			some = append(some, points[i])
		}
		return some
	}
	for name, c := range map[string]struct {
		own, points []scene.Point
		seen, other bool
	}{
		"the same":                      {own, own, true, false},
		"a larger part":                 {own, coarse, true, false},
		"beside it":                     {own, shifted(own, [3]float64{0.5, 0, 0.5}), true, false},
		"UTM":                           {own, shifted(own, [3]float64{500_000, 4_000_000, 400}), false, false},
		"far off, where a camera looks": {own, shifted(own, [3]float64{0, 0, 500_000}), true, true},
		"millimetres":                   {own, large, true, true},
		"in metres, cameras in less":    {large, own, true, true},
		"kilometres":                    {own, small, true, true},
		"no points, the same":           {nil, own, true, false},
		"no points, far off":            {nil, shifted(own, [3]float64{0, 0, 500_000}), true, true},
		"nothing":                       {own, nil, false, false},
		"few points, the same":          {every(own, 40), own, true, false},
		"few of both, the same":         {every(own, 40), every(own, 60), true, false},
		"few of both, a larger part":    {every(own, 40), every(coarse, 60), true, false},
		"few points, millimetres":       {every(own, 40), large, true, true},
		"few of both, millimetres":      {every(own, 40), every(large, 60), true, true},
		"few of both, kilometres":       {every(own, 40), every(small, 60), true, true},
		"one point, kilometres":         {own[:1], small, true, true},
		"no points, kilometres":         {nil, small, true, true},
		"no points, few millimetres":    {nil, every(large, 60), true, true},
		"few, large, beside the view":   {every(own, 40), shifted(every(large, 9), [3]float64{0, 2e4, 0}), false, true},
		"a small thing":                 {small, small, true, false},
	} {
		if seen := InView(cams, c.points); (seen > 0) != c.seen {
			t.Errorf("%s: %g of them are in view", name, seen)
		}
		if said := OtherScale(cams, c.own, c.points); (said != "") != c.other {
			t.Errorf("%s: %q", name, said)
		}
	}
}
