package twoview

import "math"

// nullSpace fills basis with orthonormal vectors that are orthogonal to rows, which it overwrites, by Householder's
// reflections. Together they are 9 at most.
func nullSpace(rows, basis []matrix) {
	for k := range rows {
		v := &rows[k]
		clear(v[:k])
		sum := product(v, v)
		if sum == 0 {
			continue
		}
		v[k] += math.Copysign(math.Sqrt(sum), v[k])
		scale := math.Sqrt(2 / product(v, v))
		for i := range v {
			v[i] *= scale
		}
		for j := k + 1; j < len(rows); j++ {
			mirror(v, &rows[j])
		}
	}
	for b := range basis {
		basis[b] = matrix{}
		basis[b][len(rows)+b] = 1
		for k := len(rows) - 1; k >= 0; k-- {
			mirror(&rows[k], &basis[b])
		}
	}
	// Mix them, so that no simple motion is a combination with a zero: solvers set the last coefficient to 1.
	weights := [4]float64{0.37, 0.59, -0.83, 0.71}
	norm, mixed := 0.0, matrix{}
	for b := range basis {
		norm += weights[b] * weights[b] / 2
		for i, x := range basis[b] {
			mixed[i] += weights[b] * x
		}
	}
	for b := range basis {
		for i, x := range mixed {
			basis[b][i] -= weights[b] / norm * x
		}
	}
}

// product sums the products of elements.
func product(a, b *matrix) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// mirror reflects x in the plane orthogonal to v, of length root 2.
func mirror(v, x *matrix) {
	d := product(v, x)
	for i, c := range v {
		x[i] -= d * c
	}
}

// maxDegree is that of the polynomials whose roots are found.
const maxDegree = 10

type polynomial [maxDegree + 1]float64 // coefficients, constant first

func (p *polynomial) at(x float64, degree int) (y, slope float64) {
	for i := degree; i >= 0; i-- {
		slope = slope*x + y
		y = y*x + p[i]
	}
	return y, slope
}

// addProduct adds s a b, of degree maxDegree at most.
func (p *polynomial) addProduct(a, b *polynomial, s float64) {
	for i, x := range a {
		for j := range maxDegree + 1 - i {
			p[i+j] += s * x * b[j]
		}
	}
}

// realRoots appends the real roots of a polynomial. Those of more than 1 are found as inverses of the roots of the
// polynomial with its coefficients reversed, so that none is out of reach.
func (p *polynomial) realRoots(degree int, roots []float64) []float64 {
	roots = p.unitRoots(degree, roots)
	var reversed polynomial
	for i := range degree + 1 {
		reversed[i] = p[degree-i]
	}
	inside := len(roots)
	roots = reversed.unitRoots(degree, roots)
	kept := roots[:inside]
	for _, w := range roots[inside:] {
		if w != 0 && math.Abs(w) < 1 {
			kept = append(kept, 1/w)
		}
	}
	return kept
}

// unitRoots appends the roots within -1 to 1 at which the sign changes: between neighbouring roots of the derivative,
// which are found first.
func (p *polynomial) unitRoots(degree int, roots []float64) []float64 {
	var derived [maxDegree + 1]polynomial // [d]: of degree d
	derived[degree] = *p
	for d := degree; d > 1; d-- {
		for i := range d {
			derived[d-1][i] = float64(i+1) * derived[d][i+1]
		}
	}
	var ends, next [maxDegree + 2]float64
	ends[0], ends[1] = -1, 1
	n := 2
	for d := 1; d <= degree; d++ {
		m, tolerance := 1, 1e-4
		if d == degree {
			tolerance = 1e-15
		}
		next[0] = -1
		at, _ := derived[d].at(-1, d)
		for i := range n - 1 {
			before := at
			if at, _ = derived[d].at(ends[i+1], d); before > 0 != (at > 0) {
				next[m] = derived[d].between(ends[i], ends[i+1], before, at, d, tolerance)
				m++
			}
		}
		next[m] = 1
		ends, n = next, m+1
	}
	return append(roots, ends[1:n-1]...)
}

// between finds the root between two places with the values a and b of different signs, by Newton's steps or halving.
func (p *polynomial) between(lo, hi, a, b float64, degree int, tolerance float64) (x float64) {
	x = lo + (hi-lo)*a/(a-b)
	for range 60 {
		y, slope := p.at(x, degree)
		if y > 0 == (a > 0) {
			lo = x
		} else {
			hi = x
		}
		next := x - y/slope
		if !(next > lo && next < hi) {
			next = (lo + hi) / 2
		}
		if math.Abs(next-x) <= tolerance || y == 0 {
			break
		}
		x = next
	}
	return x
}
