package trajectory

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// coveredAngle is how far around the scene's axis, in radians, a place may be from the nearest camera of a capture and
// still see about what that saw.
const coveredAngle = math.Pi / 6

// Uncovered counts the cameras of a way around a capture that stand where no camera of the capture stands near, seen
// from above: what they see nobody has photographed. Captures without a point to go around have no such way, and none
// is counted.
func Uncovered(way, cams []scene.Camera) (n int) {
	focus, err := focusPoint(cams)
	if err != nil {
		return 0
	}
	x, y := planeAxes(meanUp(cams), [3]float64{})
	angle := func(c *scene.Camera) float64 {
		d := geom.Sub(c.Center(), focus)
		return math.Atan2(geom.Dot(d, y), geom.Dot(d, x))
	}
	angles := make([]float64, len(cams))
	for i := range cams {
		angles[i] = angle(&cams[i])
	}
	for i := range way {
		at, nearest := angle(&way[i]), math.Pi
		for _, a := range angles {
			nearest = min(nearest, math.Abs(math.Remainder(at-a, 2*math.Pi)))
		}
		if nearest > coveredAngle {
			n++
		}
	}
	return n
}
