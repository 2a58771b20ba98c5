package inspect

import (
	"fmt"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
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

// OtherScale says that points cannot be of the scene that the cameras show, because they are too far away, too near,
// too close together or too far apart, as in "are 1e+03 times as far from the cameras as the capture's own points"; ""
// if they may be. Own are those of the capture; all are in one frame. Without them, or where they are too few, the
// distances of the cameras from each other tell what is too much.
func OtherScale(cams []scene.Camera, own, points []scene.Point) string {
	far, usual, than := typicalDepth(cams, points), typicalDepth(cams, own), "the capture's own points"
	apart := spread(len(cams), func(i int) [3]float64 { return cams[i].Center() })
	least, most := usual/otherDepth, usual*otherDepth
	if usual == 0 {
		usual, than = apart, "these are from their middle"
		most = usual * farPoint
	}
	if usual > 0 && far > 0 && (far < least || far > most) {
		return fmt.Sprintf("are %.3g times as far from the cameras as %s", far/usual, than)
	}
	return otherSize(apart, own, points)
}

// otherSize is OtherScale by the distances of points from each other, where cameras are so far apart. Points may fill
// less of the space between cameras than the capture's own, if there are any, but hardly lie far beyond both.
func otherSize(apart float64, own, points []scene.Point) string {
	if len(points) < 2 {
		return ""
	}
	wide := spread(len(points), func(i int) [3]float64 { return points[i].Pos })
	whole, than := spread(len(own), func(i int) [3]float64 { return own[i].Pos }), "the capture's own points"
	if len(own) < scene.BlindCamera {
		whole, than = apart, "the cameras"
	}
	if wide < whole/otherSpread {
		return fmt.Sprintf("are %.2g times as far from each other as %s", wide/whole, than)
	}
	if apart > whole {
		whole, than = apart, "the cameras"
	}
	if whole > 0 && wide > whole*otherSpread {
		return fmt.Sprintf("are %.2g times as far from each other as %s", wide/whole, than)
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
	medians := make([]float64, len(cams))
	parallel.For(len(cams), func(i int) {
		if depths := cams[i].DepthsOf(points); len(depths) >= scene.BlindCamera {
			medians[i] = scene.Median(depths)
		}
	})
	return scene.Median(slices.DeleteFunc(medians, func(median float64) bool { return median == 0 }))
}
