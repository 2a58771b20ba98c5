package capturetest

import (
	"math"

	"vksplat/internal/geom"
)

// Misfit brings points onto others by the best similarity, and gives the largest distance that is left, and the size of
// the others: the diagonal of their box. The rotation is Horn's: the eigenvector of a matrix of 4x4 with the largest
// eigenvalue is its quaternion.
func Misfit(from, to []geom.Vec) (worst, size float64) {
	a, b := centred(from), centred(to)
	var m [3][3]float64
	var sa, sb float64
	low, high := b[0], b[0]
	for i := range a {
		for j := range 3 {
			for k := range 3 {
				m[j][k] += a[i][j] * b[i][k]
			}
			low[j], high[j] = min(low[j], b[i][j]), max(high[j], b[i][j])
		}
		sa, sb = sa+a[i].Dot(a[i]), sb+b[i].Dot(b[i])
	}
	horn := [4][4]float64{
		{m[0][0] + m[1][1] + m[2][2], m[1][2] - m[2][1], m[2][0] - m[0][2], m[0][1] - m[1][0]},
		{0, m[0][0] - m[1][1] - m[2][2], m[0][1] + m[1][0], m[2][0] + m[0][2]},
		{0, 0, m[1][1] - m[0][0] - m[2][2], m[1][2] + m[2][1]},
		{0, 0, 0, m[2][2] - m[0][0] - m[1][1]}}
	q := [4]float64{1, 0.1, 0.2, 0.3}
	shift := math.Sqrt(sa * sb) // no eigenvalue is below -shift
	for range 20000 {
		var next [4]float64
		for j := range 4 {
			next[j] = shift * q[j]
			for k := range 4 {
				next[j] += horn[min(j, k)][max(j, k)] * q[k]
			}
		}
		length := math.Sqrt(next[0]*next[0] + next[1]*next[1] + next[2]*next[2] + next[3]*next[3])
		for j := range 4 {
			q[j] = next[j] / length
		}
	}
	scale := math.Sqrt(sb / sa)
	u := geom.Vec{q[1], q[2], q[3]}
	for i := range a {
		turned := a[i].Add(u.Cross(u.Cross(a[i]).Add(a[i].Mul(q[0]))).Mul(2))
		worst = max(worst, turned.Mul(scale).Sub(b[i]).Length())
	}
	return worst, high.Sub(low).Length()
}

// centred moves the mean of points to the origin.
func centred(points []geom.Vec) (list []geom.Vec) {
	var mean geom.Vec
	for _, p := range points {
		mean = mean.Add(p.Mul(1 / float64(len(points))))
	}
	for _, p := range points {
		list = append(list, p.Sub(mean))
	}
	return list
}
