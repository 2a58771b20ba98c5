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

const (
	// axesShare is how much cameras' axes count beside their centres, which say nothing of turns about a line that all
	// are on. Richer lenses turn cameras against their rays, so that it is little.
	axesShare = 1e-3
	// leastLike is by which factor the spread of the moved centres may be below that of the others, squared: if it is
	// smaller, they are too different to say what the scale is.
	leastLike = 4
)

// fitSimilarity finds the similarity that brings centres of cameras closest to others (Umeyama: Least-Squares
// Estimation of Transformation Parameters Between Two Point Patterns, 1991), and a little also their axes. turns are
// the cameras' own rotations from one frame to the other.
func fitSimilarity(from, to [][3]float64, turns [][9]float64) (*similarity, error) {
	a, b := mean(from), mean(to)
	var m, all, axes [9]float64
	var spread, size float64
	for i := range from {
		x, y := geom.Sub(from[i], a), geom.Sub(to[i], b)
		spread += geom.Dot(x, x)
		size += geom.Dot(y, y) / float64(len(from))
		for j := range 9 {
			m[j] += y[j/3] * x[j%3]
			axes[j] += turns[i][j]
		}
	}
	for j := range 9 {
		all[j] = m[j] + axesShare*size*axes[j]
	}
	var svd mat.SVD
	if !(spread > 0) || !svd.Factorize(mat.NewDense(3, 3, all[:]), mat.SVDFull) {
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
	if !(size > 0) || s.scale*s.scale*spread*leastLike < size*float64(len(from)) {
		return nil, errors.New("align cameras: their places say nothing of the scale")
	}
	s.t = geom.Sub(b, geom.Scale(geom.Rotate(r, a), s.scale))
	return s, nil
}

func mean(list [][3]float64) (m [3]float64) {
	for _, x := range list {
		m = geom.Add(m, x)
	}
	return geom.Scale(m, 1/float64(len(list)))
}

// Align finds the similarity x -> scale r x + t that brings places closest to others. It fails where these say nothing
// of the scale.
func Align(from, to [][3]float64) (scale float64, r [9]float64, t [3]float64, err error) {
	s, err := fitSimilarity(from, to, make([][9]float64, len(from)))
	if err != nil {
		return 0, r, t, err
	}
	return s.scale, s.r, s.t, nil
}
