package twoview

import "vksplat/internal/geom"

// sevenPoint appends the fundamental matrices, at most 3, that agree with 7 pairs of rays: b' F a = 0 (Hartley,
// Zisserman: Multiple View Geometry, 11.1.2).
func sevenPoint(a, b *[7]vec, list []matrix) []matrix {
	var rows [7]matrix
	var basis [2]matrix
	for i := range rows {
		rows[i] = outer(b[i], a[i])
	}
	nullSpace(rows[:], basis[:])
	// det(F0 + x F1) by rows: each term has rows of F1 where its index has bits.
	var p polynomial
	for bits := range 8 {
		var m matrix
		ones := 0
		for i := range 3 {
			from := bits >> i & 1
			ones += from
			copy(m[3*i:3*i+3], basis[from][3*i:])
		}
		p[ones] += geom.Det3(m)
	}
	var roots [2 * maxDegree]float64
	for _, x := range p.realRoots(3, roots[:0]) {
		var f matrix
		for i := range f {
			f[i] = basis[0][i] + x*basis[1][i]
		}
		list = append(list, f)
	}
	return list
}
