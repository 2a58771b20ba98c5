package blocks

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene"
)

// When the plane that the cameras lie in is taken for level: it must be thin, and near to what the cameras themselves
// say of up.
const (
	thinPlane = 0.1 // variance across it, of the lesser one along it
	nearUp    = 0.7 // cosine
)

// findUp is the up direction of a capture. The cameras' mean up or, for cameras that mostly look down and are turned
// every way, against their mean view, says about where it is: photos that look down say little of it, and mislead.
// Where the cameras spread over a plane, as those of a flight or of a walk through streets, that is level.
func findUp(cams []scene.Camera) ([3]float64, error) {
	up, err := scene.MeanUp(cams)
	if err != nil {
		var view [3]float64
		for i := range cams {
			for k := range view {
				view[k] -= cams[i].R[6+k] / float64(max(len(cams), 1))
			}
		}
		const least = 0.5 // a flight that looks down at a slant of 60 degrees, on average
		if !(math.Sqrt(geom.Dot(view, view)) >= least) {
			return up, err
		}
		up = geom.Vec(view).Unit()
	}
	normal, thin := planeOf(cams)
	if along := geom.Dot(normal, up); thin && math.Abs(along) > nearUp {
		return geom.Scale(normal, math.Copysign(1, along)), nil
	}
	return up, nil
}

// planeOf is the direction in which the cameras' positions vary least, and whether they lie in a plane across it.
func planeOf(cams []scene.Camera) (normal [3]float64, thin bool) {
	var mean [3]float64
	for i := range cams {
		mean = geom.Add(mean, geom.Scale(cams[i].Center(), 1/float64(len(cams))))
	}
	var m [3][3]float64
	for i := range cams {
		d := geom.Add(cams[i].Center(), geom.Scale(mean, -1))
		for r := range 3 {
			for c := range 3 {
				m[r][c] += d[r] * d[c]
			}
		}
	}
	values, vectors := geom.SymmetricEigen(m)
	least := 0
	for k, v := range values {
		if v < values[least] {
			least = k
		}
	}
	second := min(values[(least+1)%3], values[(least+2)%3])
	return [3]float64{vectors[0][least], vectors[1][least], vectors[2][least]}, values[least] < thinPlane*second
}
