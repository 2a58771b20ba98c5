package twoview

import (
	"math"

	"vksplat/internal/geom"
)

// Polynomials in x, y, z of degree 1, 2 and 3 have 4, 10 and 20 coefficients. linear is in the order x, y, z, 1; cubic
// in that of Nistér (2004): what is eliminated first stands first.
type (
	linear    [4]float64
	quadratic [10]float64
	cubic     [20]float64
)

var (
	quadraticPowers = [10][3]int{{2, 0, 0}, {1, 1, 0}, {1, 0, 1}, {1, 0, 0}, {0, 2, 0}, {0, 1, 1}, {0, 1, 0}, {0, 0, 2},
		{0, 0, 1}, {0, 0, 0}}
	cubicPowers = [20][3]int{{3, 0, 0}, {0, 3, 0}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {2, 0, 0}, {0, 2, 1}, {0, 2, 0},
		{1, 1, 1}, {1, 1, 0}, {1, 0, 2}, {1, 0, 1}, {1, 0, 0}, {0, 1, 2}, {0, 1, 1}, {0, 1, 0}, {0, 0, 3}, {0, 0, 2},
		{0, 0, 1}, {0, 0, 0}}
	linearPowers = [4][3]int{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}}
	inQuadratic  [4][4]uint8 // where the product of two terms stands
	inCubic      = cubicAt() // of a term of degree 2 and one of degree 1
)

func cubicAt() (table [10][4]uint8) {
	place := func(a, b [3]int, powers [][3]int) uint8 {
		for i, p := range powers {
			if p == [3]int{a[0] + b[0], a[1] + b[1], a[2] + b[2]} {
				return uint8(i)
			}
		}
		panic("no such power")
	}
	for i, a := range linearPowers {
		for j, b := range linearPowers {
			inQuadratic[i][j] = place(a, b, quadraticPowers[:])
		}
		for j, b := range quadraticPowers {
			table[j][i] = place(a, b, cubicPowers[:])
		}
	}
	return table
}

// addProduct adds s a b.
func (q *quadratic) addProduct(a, b *linear, s float64) {
	for i, x := range a {
		x *= s
		for j, y := range b {
			q[inQuadratic[i][j]] += x * y
		}
	}
}

func (c *cubic) addProduct(a *quadratic, b *linear) {
	for i, x := range a {
		for j, y := range b {
			c[inCubic[i][j]] += x * y
		}
	}
}

// fivePoint appends the essential matrices, at most 10, that agree with 5 pairs of rays: b' E a = 0 (Nistér: An
// Efficient Solution to the Five-Point Relative Pose Problem, PAMI 2004).
func fivePoint(a, b *[5]vec, list []matrix) []matrix {
	var rows [5]matrix
	var basis [4]matrix
	for i := range rows {
		rows[i] = outer(b[i], a[i])
	}
	nullSpace(rows[:], basis[:])
	var e [9]linear // x basis[0] + y basis[1] + z basis[2] + basis[3]
	for i := range e {
		e[i] = linear{basis[0][i], basis[1][i], basis[2][i], basis[3][i]}
	}
	m := essentialConstraints(&e)
	reduced := m
	if !eliminate(&reduced) {
		return list
	}
	var rest [3][3]polynomial // times (x, y, 1) it is 0
	for i := range rest {
		p, q := &reduced[4+2*i], &reduced[5+2*i]
		for k, from := range [3]int{10, 13, 16} {
			degree := 2 + k/2
			for d := range degree + 2 {
				if d <= degree {
					rest[i][k][d] += p[from+degree-d]
				}
				if d > 0 {
					rest[i][k][d] -= q[from+degree+1-d]
				}
			}
		}
	}
	first, second := minor(&rest, 1, 2), minor(&rest, 2, 0)
	third := minor(&rest, 0, 1)
	var whole polynomial
	for k, p := range []*polynomial{&first, &second, &third} {
		q := product(p, &rest[2][k])
		for i := range whole {
			whole[i] += q[i]
		}
	}
	var roots [2 * maxDegree]float64
	for _, z := range whole.realRoots(10, roots[:0]) {
		x, _ := first.at(z, 7)
		y, _ := second.at(z, 7)
		w, _ := third.at(z, 6)
		at := vec{x / w, y / w, z}
		if !geom.Finite(at[:]...) {
			continue
		}
		found := combined(&basis, at)
		if unlikeEssential(&found) > 1e-11 {
			found = combined(&basis, polished(&m, at))
		}
		list = append(list, found)
	}
	return list
}

func combined(basis *[4]matrix, at vec) (e matrix) {
	for i := range e {
		e[i] = at[0]*basis[0][i] + at[1]*basis[1][i] + at[2]*basis[2][i] + basis[3][i]
	}
	return e
}

// unlikeEssential returns by how much E E' E - trace(E E') E / 2 differs from 0, relative to the size of E cubed.
func unlikeEssential(e *matrix) (worst float64) {
	square := geom.Product(*e, geom.Transposed(*e))
	trace := square[0] + square[4] + square[8]
	for i, x := range geom.Product(square, *e) {
		worst = max(worst, math.Abs(x-trace*e[i]/2))
	}
	return worst / (trace * math.Sqrt(trace))
}

// essentialConstraints are det E = 0 and E E' E - trace(E E') E / 2 = 0.
func essentialConstraints(e *[9]linear) (m [10]cubic) {
	var square [9]quadratic // E E' - trace/2
	for i := range 3 {
		for j := range i + 1 {
			s := &square[3*i+j]
			for k := range 3 {
				s.addProduct(&e[3*i+k], &e[3*j+k], 1)
			}
			square[3*j+i] = *s
		}
	}
	var half quadratic
	for k := range half {
		half[k] = (square[0][k] + square[4][k] + square[8][k]) / 2
	}
	for i := range 3 {
		for k := range half {
			square[4*i][k] -= half[k]
		}
	}
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				m[3*i+j].addProduct(&square[3*i+k], &e[3*k+j])
			}
		}
	}
	for k := range 3 {
		var q quadratic
		i, j := (k+1)%3, (k+2)%3
		q.addProduct(&e[i], &e[3+j], 1)
		q.addProduct(&e[j], &e[3+i], -1)
		m[9].addProduct(&q, &e[6+k])
	}
	return m
}

// eliminate makes the first ten columns the identity, by Gauss and Jordan's method; ok is false if they are singular.
func eliminate(m *[10]cubic) (ok bool) {
	for c := range 10 {
		pivot := c
		for r := c + 1; r < 10; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[pivot][c]) {
				pivot = r
			}
		}
		if m[pivot][c] == 0 {
			return false
		}
		m[c], m[pivot] = m[pivot], m[c]
		scale := 1 / m[c][c]
		for k := c; k < 20; k++ {
			m[c][k] *= scale
		}
		for r := range 10 {
			if f := m[r][c]; r != c && f != 0 && (r > c || r >= 4) { // rows 0 to 3 are not read
				for k := c; k < 20; k++ {
					m[r][k] -= f * m[c][k]
				}
			}
		}
	}
	return true
}

// minor is that of the first two rows at two columns.
func minor(m *[3][3]polynomial, i, j int) (p polynomial) {
	p = product(&m[0][i], &m[1][j])
	q := product(&m[0][j], &m[1][i])
	for k := range p {
		p[k] -= q[k]
	}
	return p
}

// product is that of polynomials whose degrees sum to maxDegree at most.
func product(a, b *polynomial) (p polynomial) {
	for i, x := range a {
		if x == 0 {
			continue
		}
		for j := range maxDegree + 1 - i {
			p[i+j] += x * b[j]
		}
	}
	return p
}

// polished takes Gauss and Newton's steps to where all ten constraints hold: the elimination loses digits.
func polished(m *[10]cubic, at vec) vec {
	type state = vec
	return minimise(at, 3, 2, func(p *state, n *normal) {
		var terms cubic
		var slopes [3]cubic
		monomials(*p, &terms, &slopes)
		for i := range m {
			var r float64
			var j [1][maxFreedoms]float64
			for k, c := range m[i] {
				r += c * terms[k]
				j[0][0] += c * slopes[0][k]
				j[0][1] += c * slopes[1][k]
				j[0][2] += c * slopes[2][k]
			}
			n.add(squares, []float64{r}, j[:])
		}
	}, func(p *state, step [maxFreedoms]float64) state { return geom.Add(*p, vec(step[:3])) })
}

func squares(s float64) (cost, slope float64) { return s, 1 }

// monomials evaluates the terms of a cubic and their derivatives.
func monomials(p vec, terms *cubic, slopes *[3]cubic) {
	var power [3][4]float64
	for i, x := range p {
		power[i] = [4]float64{1, x, x * x, x * x * x}
	}
	for k, e := range cubicPowers {
		x, y, z := power[0][e[0]], power[1][e[1]], power[2][e[2]]
		terms[k] = x * y * z
		slopes[0][k] = float64(e[0]) * power[0][max(e[0]-1, 0)] * y * z
		slopes[1][k] = float64(e[1]) * x * power[1][max(e[1]-1, 0)] * z
		slopes[2][k] = float64(e[2]) * x * y * power[2][max(e[2]-1, 0)]
	}
}

// outer returns a b'.
func outer(a, b vec) (m matrix) {
	for i := range 3 {
		for j := range 3 {
			m[3*i+j] = a[i] * b[j]
		}
	}
	return m
}
