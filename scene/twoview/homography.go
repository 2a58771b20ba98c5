package twoview

import (
	"math"

	"vksplat/internal/geom"
)

// transfer returns the squared distance of b's pixel from where H takes a's, pixels.
func transfer(h *matrix, a, b *Sight) float64 { return b.missed(geom.Rotate(*h, a.ray)) }

// fourPoint appends the homography that agrees with 4 matches (Hartley, Zisserman: Multiple View Geometry, 4.1), with
// the sign that keeps rays in front. None is appended if signs differ: no plane is seen like that.
func fourPoint(list []couple, sample []int32, out []matrix) []matrix {
	var rows [8]matrix
	for k, i := range sample {
		c := &list[i]
		rows[2*k], rows[2*k+1] = outer(c.b.px, c.a.ray), outer(c.b.py, c.a.ray)
	}
	var basis [1]matrix
	nullSpace(rows[:], basis[:])
	h, front := basis[0], 0
	for _, i := range sample {
		if geom.Dot(list[i].b.axis, geom.Rotate(h, list[i].a.ray)) > 0 {
			front++
		}
	}
	switch front {
	case 0:
		for i := range h {
			h[i] = -h[i]
		}
	case len(sample):
	default:
		return out
	}
	return append(out, h)
}

// refinedHomography minimises the sum of squared transfer errors of some matches: linear equations, weighted by the
// depths of the former iterate, solved by a step of inverse iteration.
func refinedHomography(list []couple, h matrix, some []int32) matrix {
	for range 4 {
		var m [9][9]float64
		for _, i := range some {
			c := &list[i]
			w := 1 / geom.Square(geom.Dot(c.b.axis, geom.Rotate(h, c.a.ray)))
			for _, p := range [2]vec{c.b.px, c.b.py} {
				row := outer(p, c.a.ray)
				for k, x := range row {
					for l, y := range row[:k+1] {
						m[k][l] += w * x * y
					}
				}
			}
		}
		next := h
		if !inverseStep(&m, &next) {
			return h
		}
		h = next
	}
	return h
}

// inverseStep moves x to the eigenvector of the smallest eigenvalue of a symmetric matrix, of which it reads the lower
// triangle and which it overwrites; ok is false for one that is not finite.
func inverseStep(m *[9][9]float64, x *matrix) (ok bool) {
	trace := 0.0
	for i := range 9 {
		trace += m[i][i]
	}
	for i := range 9 { // L D L'
		m[i][i] += 1e-15 * trace
		for j := range i {
			for k := range j {
				m[i][j] -= m[i][k] * m[j][k] * m[k][k]
			}
			m[i][j] /= m[j][j]
		}
		for k := range i {
			m[i][i] -= m[i][k] * m[i][k] * m[k][k]
		}
		m[i][i] = math.Max(m[i][i], 1e-18*trace)
	}
	start := *x
	for range 2 {
		for i := range 9 {
			for k := range i {
				x[i] -= m[i][k] * x[k]
			}
		}
		for i := 8; i >= 0; i-- {
			x[i] /= m[i][i]
			for k := i + 1; k < 9; k++ {
				x[i] -= m[k][i] * x[k]
			}
		}
		norm, along := 0.0, 0.0
		for i := range x {
			norm, along = norm+x[i]*x[i], along+x[i]*start[i]
		}
		norm = math.Copysign(math.Sqrt(norm), along)
		for i := range x {
			x[i] /= norm
		}
	}
	return geom.Finite(x[:]...)
}
