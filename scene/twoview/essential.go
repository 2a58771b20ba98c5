package twoview

import (
	"math"
	"slices"

	"vksplat/internal/geom"
)

// cubics are the terms of polynomials of degree 3 in x, y, z in the order of Nistér (2004): what is eliminated first
// stands first. Factors are 0, 1, 2 for x, y, z and 3 for 1.
var cubics = [20][3]int{{0, 0, 0}, {1, 1, 1}, {0, 0, 1}, {0, 1, 1}, {0, 0, 2}, {0, 0, 3}, {1, 1, 2}, {1, 1, 3},
	{0, 1, 2}, {0, 1, 3}, {0, 2, 2}, {0, 2, 3}, {0, 3, 3}, {1, 2, 2}, {1, 2, 3}, {1, 3, 3}, {2, 2, 2}, {2, 2, 3},
	{2, 3, 3}, {3, 3, 3}}

// cubicAt is where the product of three factors stands.
var cubicAt = func() (at [4][4][4]int) {
	for i := range 64 {
		f := []int{i / 16, i / 4 % 4, i % 4}
		slices.Sort(f)
		at[i/16][i/4%4][i%4] = slices.Index(cubics[:], [3]int(f))
	}
	return at
}()

// fivePoint appends the essential matrices, at most 10, that agree with 5 matches: b' E a = 0 (Nistér: An Efficient
// Solution to the Five-Point Relative Pose Problem, PAMI 2004). Nearly all are exact to 1e-11.
func fivePoint(list []couple, sample []int32, out []matrix) []matrix {
	var rows [5]matrix
	var basis [4]matrix // E = x basis[0] + y basis[1] + z basis[2] + basis[3]
	epipolarRows(list, sample, rows[:])
	nullSpace(rows[:], basis[:])
	m := essentialConstraints(&basis)
	if !eliminate(&m) {
		return out
	}
	var rest [3][3]polynomial // times (x, y, 1) it is 0
	for i := range rest {
		p, q := &m[4+2*i], &m[5+2*i]
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
	var cofactors [3]polynomial // of the last row
	var whole polynomial        // the determinant
	for k := range cofactors {
		i, j := (k+1)%3, (k+2)%3
		cofactors[k].addProduct(&rest[0][i], &rest[1][j], 1)
		cofactors[k].addProduct(&rest[0][j], &rest[1][i], -1)
		whole.addProduct(&cofactors[k], &rest[2][k], 1)
	}
	var roots [2 * maxDegree]float64
	for _, z := range whole.realRoots(10, roots[:0]) {
		x, _ := cofactors[0].at(z, 7)
		y, _ := cofactors[1].at(z, 7)
		w, _ := cofactors[2].at(z, 6)
		var e matrix
		for i := range e {
			e[i] = x/w*basis[0][i] + y/w*basis[1][i] + z*basis[2][i] + basis[3][i]
		}
		if !geom.Finite(e[:]...) {
			continue
		}
		if unlikeEssential(&e) > 1e-11 { // the elimination has lost digits
			if p, ok := factorised(&e, true); ok {
				e = p.refined(list, sample, true, 10, squares).e
			}
		}
		out = append(out, e)
	}
	return out
}

// epipolarRows fills rows with the coefficients of b' E a = 0.
func epipolarRows(list []couple, sample []int32, rows []matrix) {
	for k, i := range sample {
		rows[k] = outer(list[i].b.ray, list[i].a.ray)
	}
}

func squares(s float64) (cost, slope float64) { return s, 1 }

// unlikeEssential returns by how much E E' E - trace(E E') E / 2 differs from 0, relative to the size of E cubed.
func unlikeEssential(e *matrix) (worst float64) {
	square := geom.Product(*e, geom.Transposed(*e))
	trace := square[0] + square[4] + square[8]
	for i, x := range geom.Product(square, *e) {
		worst = max(worst, math.Abs(x-trace*e[i]/2))
	}
	return worst / (trace * math.Sqrt(trace))
}

// essentialConstraints are the coefficients of E E' E - trace(E E') E / 2 = 0 and of det E = 0.
func essentialConstraints(basis *[4]matrix) (m [10][20]float64) {
	for i := range 4 {
		for j := range 4 {
			square := geom.Product(basis[i], geom.Transposed(basis[j]))
			half := (square[0] + square[4] + square[8]) / 2
			for k := range 3 {
				square[4*k] -= half
			}
			cross := geom.Cross(vec(basis[i][:3]), vec(basis[j][3:6]))
			for k := range 4 {
				at := cubicAt[i][j][k]
				for l, x := range geom.Product(square, basis[k]) {
					m[l][at] += x
				}
				m[9][at] += geom.Dot(cross, vec(basis[k][6:]))
			}
		}
	}
	return m
}

// eliminate makes the first ten columns the identity, by Gauss and Jordan's method; ok is false if they are singular.
func eliminate(m *[10][20]float64) (ok bool) {
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
