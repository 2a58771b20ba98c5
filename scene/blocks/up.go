package blocks

import (
	"math"

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
		if !(math.Sqrt(dot(view, view)) >= least) {
			return up, err
		}
		up = unit(view)
	}
	normal, thin := planeOf(cams)
	if along := dot(normal, up); thin && math.Abs(along) > nearUp {
		return scaled(normal, math.Copysign(1, along)), nil
	}
	return up, nil
}

// planeOf is the direction in which the cameras' positions vary least, and whether they lie in a plane across it.
func planeOf(cams []scene.Camera) (normal [3]float64, thin bool) {
	var mean [3]float64
	for i := range cams {
		mean = add(mean, scaled(cams[i].Center(), 1/float64(len(cams))))
	}
	var m [3][3]float64
	for i := range cams {
		d := add(cams[i].Center(), scaled(mean, -1))
		for r := range 3 {
			for c := range 3 {
				m[r][c] += d[r] * d[c]
			}
		}
	}
	values, vectors := eigen(m)
	least := 0
	for k, v := range values {
		if v < values[least] {
			least = k
		}
	}
	second := min(values[(least+1)%3], values[(least+2)%3])
	return [3]float64{vectors[0][least], vectors[1][least], vectors[2][least]}, values[least] < thinPlane*second
}

// eigen returns the eigenvalues of a symmetric matrix and, as columns, its eigenvectors (Jacobi: rotations that make
// one entry after the other zero).
func eigen(m [3][3]float64) (values [3]float64, vectors [3][3]float64) {
	for k := range 3 {
		vectors[k][k] = 1
	}
	for sweep := range 3 * 12 {
		p, q := sweep%3, (sweep+1)%3
		if m[p][q] == 0 {
			continue
		}
		theta := (m[q][q] - m[p][p]) / (2 * m[p][q])
		t := math.Copysign(1, theta) / (math.Abs(theta) + math.Sqrt(theta*theta+1))
		cos := 1 / math.Sqrt(t*t+1)
		sin := t * cos
		for k := range 3 {
			m[k][p], m[k][q] = cos*m[k][p]-sin*m[k][q], sin*m[k][p]+cos*m[k][q]
			vectors[k][p], vectors[k][q] = cos*vectors[k][p]-sin*vectors[k][q], sin*vectors[k][p]+cos*vectors[k][q]
		}
		for k := range 3 {
			m[p][k], m[q][k] = cos*m[p][k]-sin*m[q][k], sin*m[p][k]+cos*m[q][k]
		}
	}
	return [3]float64{m[0][0], m[1][1], m[2][2]}, vectors
}
