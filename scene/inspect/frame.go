package inspect

import (
	"fmt"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// Points are of another scale than the capture's own if they are so many times as far from the cameras, or as near, as
// these, or so much closer together: a scan may leave out the background, or have it.
const (
	otherDepth  = 10
	otherSpread = 100
)

// InView returns which share of points any camera sees, all in one frame. Above a half it counts no further.
func InView(cams []scene.Camera, points []scene.Point) float64 {
	n := len(points)
	v := coverage{c: &scene.Capture{Cameras: cams, Points: points}, stride: max(1, (n+countedPoints-1)/countedPoints)}
	v.counted = (n + v.stride - 1) / v.stride
	return float64(v.countSeen(false)) / float64(max(v.counted, 1))
}

// OtherScale says that points cannot be of the scene that the cameras show, because they are too far away, too near or
// too close together, as in "are 1e+03 times as far from the cameras as the capture's own points"; "" if they may be.
// Own are those of the capture; all are in one frame. Without them the distances of the cameras from each other tell
// what is too far.
func OtherScale(cams []scene.Camera, own, points []scene.Point) string {
	far, usual, than := typicalDepth(cams, points), typicalDepth(cams, own), "the capture's own points"
	least, most := usual/otherDepth, usual*otherDepth
	if usual == 0 {
		usual, than = spread(len(cams), func(i int) [3]float64 { return cams[i].Center() }), "these are from their middle"
		most = usual * farPoint
	}
	if usual > 0 && far > 0 && (far < least || far > most) {
		return fmt.Sprintf("are %.3g times as far from the cameras as %s", far/usual, than)
	}
	wide := spread(len(points), func(i int) [3]float64 { return points[i].Pos })
	whole := spread(len(own), func(i int) [3]float64 { return own[i].Pos })
	if len(points) > 1 && wide < whole/otherSpread {
		return fmt.Sprintf("are %.2g times as far from each other as the capture's own points", wide/whole)
	}
	return ""
}

// spread is the median distance of n places from their middle, of some of them where they are many.
func spread(n int, at func(i int) [3]float64) float64 {
	var axes [3][]float64
	stride := 1 + n/countedPoints
	for i := 0; i < n; i += stride {
		for k, x := range at(i) {
			axes[k] = append(axes[k], x)
		}
	}
	middle := [3]float64{scene.Median(axes[0]), scene.Median(axes[1]), scene.Median(axes[2])}
	distances := axes[0][:0]
	for i := 0; i < n; i += stride {
		distances = append(distances, geom.Length(geom.Sub(at(i), middle)))
	}
	return scene.Median(distances)
}

// typicalDepth is the median over the cameras of that of the depths in their pictures, 0 where they see too little.
func typicalDepth(cams []scene.Camera, points []scene.Point) float64 {
	var medians []float64
	for _, d := range (&scene.Capture{Cameras: cams, Points: points}).Depths(1) {
		if d.Median > 0 {
			medians = append(medians, d.Median)
		}
	}
	return scene.Median(medians)
}
