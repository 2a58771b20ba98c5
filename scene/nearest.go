package scene

import (
	"math"

	"vksplat/internal/geom"
)

// Nearest says how far a held-out view is from those that were trained on. Its two numbers may be those of different
// cameras.
type Nearest struct {
	Degrees  float64 // least angle between the directions of view
	Distance float64 // least distance of the centres; 1 is the median distance of the training cameras from their mean
}

// NearestTo returns by name how far each of the views is from the training cameras, of which there is one at least.
// Where these are all in one place, distances are in the cameras' unit.
func NearestTo(train, views []Camera) map[string]Nearest {
	centres, _, distances := spread(train)
	unit := Median(distances)
	if unit == 0 {
		unit = 1
	}
	list := make(map[string]Nearest, len(views))
	for i := range views {
		at, looks := views[i].Center(), [3]float64(views[i].R[6:])
		n := Nearest{math.Inf(1), math.Inf(1)}
		for k := range train {
			to := [3]float64(train[k].R[6:])
			angle := math.Atan2(geom.Length(geom.Cross(looks, to)), geom.Dot(looks, to))
			n.Degrees = min(n.Degrees, angle*180/math.Pi)
			n.Distance = min(n.Distance, geom.Length(geom.Sub(centres[k], at))/unit)
		}
		list[views[i].Name] = n
	}
	return list
}

// spread returns the centres of cameras, their mean, and how far each is from that.
func spread(cams []Camera) (centres [][3]float64, mean [3]float64, distances []float64) {
	centres, distances = make([][3]float64, len(cams)), make([]float64, len(cams))
	for i := range cams {
		centres[i] = cams[i].Center()
		for k := range 3 {
			mean[k] += centres[i][k] / float64(len(cams))
		}
	}
	for i, p := range centres {
		distances[i] = math.Sqrt(geom.Square(p[0]-mean[0]) + geom.Square(p[1]-mean[1]) + geom.Square(p[2]-mean[2]))
	}
	return centres, mean, distances
}

// Focus returns the point that is nearest to all axes of the cameras, by least squares, and how far these are from
// parallel: about the mean square of the angle between them, in radians. Where that is 0 there is no such point.
func Focus(cams []Camera) (p [3]float64, spread float64) {
	var a [9]float64 // the sum over axes of the squared distance is least where a p = b
	var b [3]float64
	for i := range cams {
		axis, at := [3]float64(cams[i].R[6:]), cams[i].Center()
		for r := range 3 {
			for c := range 3 {
				v := -axis[r] * axis[c]
				if r == c {
					v++
				}
				a[3*r+c] += v / float64(len(cams))
				b[r] += v * at[c] / float64(len(cams))
			}
		}
	}
	return geom.Rotate(geom.InverseTransposed(a), b), geom.Det3(a) // a is symmetric
}
