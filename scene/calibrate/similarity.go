package calibrate

import (
	"errors"

	"gonum.org/v1/gonum/mat"

	"vksplat/internal/geom"
)

// similarity maps x to scale r x + t.
type similarity struct {
	scale float64
	r     [9]float64
	t     [3]float64
}

func (s *similarity) apply(x [3]float64) [3]float64 {
	return geom.Add(geom.Scale(geom.Rotate(s.r, x), s.scale), s.t)
}

// fitSimilarity finds the similarity that brings points closest to others (Umeyama: Least-Squares Estimation of
// Transformation Parameters Between Two Point Patterns, 1991).
func fitSimilarity(from, to [][3]float64) (*similarity, error) {
	a, b := mean(from), mean(to)
	var m [9]float64
	var spread float64
	for i := range from {
		x, y := geom.Sub(from[i], a), geom.Sub(to[i], b)
		spread += geom.Dot(x, x)
		for j := range 9 {
			m[j] += y[j/3] * x[j%3]
		}
	}
	var svd mat.SVD
	if !(spread > 0) || !svd.Factorize(mat.NewDense(3, 3, m[:]), mat.SVDFull) {
		return nil, errors.New("align cameras: all are in one place")
	}
	var u, v, product mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	sign := 1.0
	if mat.Det(&u)*mat.Det(&v) < 0 {
		sign = -1
	}
	product.Product(&u, mat.NewDiagDense(3, []float64{1, 1, sign}), v.T())
	r := [9]float64(product.RawMatrix().Data)
	var along float64 // trace of r' m
	for j := range 9 {
		along += r[j] * m[j]
	}
	s := &similarity{scale: along / spread, r: r}
	s.t = geom.Sub(b, geom.Scale(geom.Rotate(r, a), s.scale))
	return s, nil
}

func mean(list [][3]float64) (m [3]float64) {
	for _, x := range list {
		m = geom.Add(m, x)
	}
	return geom.Scale(m, 1/float64(len(list)))
}
