package geom

import (
	"math"
)

// RotationFromQuat gives the row-major matrix of a quaternion w, x, y, z of
// any non-zero length; ok is false when it has none or is not finite.
func RotationFromQuat(q [4]float64) (r [9]float64, ok bool) {
	norm := math.Hypot(math.Hypot(q[0], q[1]), math.Hypot(q[2], q[3]))
	if !(norm > 1e-12) || math.IsInf(norm, 0) {
		return r, false
	}
	w, x, y, z := q[0]/norm, q[1]/norm, q[2]/norm, q[3]/norm
	return [9]float64{
		1 - 2*(y*y+z*z), 2 * (x*y - w*z), 2 * (x*z + w*y),
		2 * (x*y + w*z), 1 - 2*(x*x+z*z), 2 * (y*z - w*x),
		2 * (x*z - w*y), 2 * (y*z + w*x), 1 - 2*(x*x+y*y),
	}, true
}

func Rotate(r [9]float64, p [3]float64) [3]float64 {
	return [3]float64{
		r[0]*p[0] + r[1]*p[1] + r[2]*p[2],
		r[3]*p[0] + r[4]*p[1] + r[5]*p[2],
		r[6]*p[0] + r[7]*p[1] + r[8]*p[2],
	}
}

func Add(a, b [3]float64) [3]float64 {
	return [3]float64{a[0] + b[0], a[1] + b[1], a[2] + b[2]}
}

func Sub(a, b [3]float64) [3]float64 {
	return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]}
}

func Scale(a [3]float64, s float64) [3]float64 {
	return [3]float64{a[0] * s, a[1] * s, a[2] * s}
}

func Length(a [3]float64) float64 {
	return math.Hypot(math.Hypot(a[0], a[1]), a[2])
}

func Transposed(r [9]float64) [9]float64 {
	return [9]float64{r[0], r[3], r[6], r[1], r[4], r[7], r[2], r[5], r[8]}
}

// TranslationOf returns T = -R p for a camera at p.
func TranslationOf(r [9]float64, p [3]float64) [3]float64 { return Scale(Rotate(r, p), -1) }

func Dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func Cross(a, b [3]float64) [3]float64 {
	return [3]float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// Identity is the rotation of a lens that looks along its camera.
var Identity = [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}
