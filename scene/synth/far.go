package synth

import (
	"fmt"
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Where Options.Far puts cameras: at farRadii from the middle of the scene, at the elevation of the middle path; and at
// one radius, farDegrees above the highest path. The paths' radii are within 1 %.
var (
	farRadii   = [...]float64{0.5, 1, 2}
	farDegrees = [...]float64{15, 30, 45}
)

// Each place is a group of cameras around the scene; the first is turned so that none is close to a thing on the table.
const (
	farGroup = 4
	farTurn  = 50 * math.Pi / 180
)

var synthMiddle = geom.Vec{0, 0, 0.5}

// radiusAndElevation places a path of the cameras, seen from the middle.
func radiusAndElevation(ring int) (radius, elevation float64) {
	out, up := synthRings[ring].radius, synthRings[ring].height-synthMiddle[2]
	return math.Hypot(out, up), math.Atan2(up, out)
}

// farViews returns the cameras of Options.Far, like one of the others but for its place.
func farViews(like scene.Camera) (views []scene.Camera) {
	like.Motion = scene.Motion{}
	group := func(name string, radius, elevation float64) {
		for k := range farGroup {
			sin, cos := math.Sincos(farTurn + float64(k)*2*math.Pi/farGroup)
			up, out := math.Sincos(elevation)
			like.Name = fmt.Sprintf("view_far_%s_%d.png", name, k)
			scene.LookAt(&like, synthMiddle.Add(geom.Vec{out * cos, out * sin, up}.Mul(radius)), synthMiddle)
			views = append(views, like)
		}
	}
	radius, middle := radiusAndElevation(1)
	for _, r := range farRadii {
		group(fmt.Sprintf("%gr", r), r*radius, middle)
	}
	_, highest := radiusAndElevation(len(synthRings) - 1)
	for _, d := range farDegrees {
		group(fmt.Sprintf("%gdeg", d), radius, highest+d*math.Pi/180)
	}
	return views
}
