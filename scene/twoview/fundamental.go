package twoview

import (
	"vksplat/internal/geom"
	"vksplat/scene/adjust"
)

// sevenPoint appends the fundamental matrices, at most 3, that agree with 7 matches: b' F a = 0 (Hartley,
// Zisserman: Multiple View Geometry, 11.1.2).
func sevenPoint(list []couple, sample []int32, out []matrix) []matrix {
	var rows [7]matrix
	var basis [2]matrix
	epipolarRows(list, sample, rows[:])
	nullSpace(rows[:], basis[:])
	p := determinant(&basis[0], &basis[1])
	var roots [2 * maxDegree]float64
	for _, x := range p.realRoots(3, roots[:0]) {
		var f matrix
		for i := range f {
			f[i] = basis[0][i] + x*basis[1][i]
		}
		out = append(out, f)
	}
	return out
}

// determinant is that of a + x b, as a polynomial of x: of each row, a's or b's part.
func determinant(a, b *matrix) (p polynomial) {
	from := [2]*matrix{a, b}
	for bits := range 8 {
		var m matrix
		ones := 0
		for i := range 3 {
			of := bits >> i & 1
			ones += of
			copy(m[3*i:3*i+3], from[of][3*i:])
		}
		p[ones] += geom.Det3(m)
	}
	return p
}

// transfer returns the squared distance of b's pixel from where H takes a's, pixels.
func transfer(h *matrix, a, b *Sight) float64 { return b.missed(geom.Rotate(*h, a.ray)) }

// fourPoint appends the homography that agrees with 4 matches (Hartley, Zisserman, 4.1). Its sign keeps the first ray
// in front.
func fourPoint(list []couple, sample []int32, out []matrix) []matrix {
	var rows [8]matrix
	var basis [1]matrix
	for k, i := range sample {
		c := &list[i]
		rows[2*k], rows[2*k+1] = outer(c.b.px, c.a.ray), outer(c.b.py, c.a.ray)
	}
	nullSpace(rows[:], basis[:])
	if first := &list[sample[0]]; geom.Dot(first.b.axis, geom.Rotate(basis[0], first.a.ray)) < 0 {
		for i := range basis[0] {
			basis[0][i] *= -1
		}
	}
	return append(out, basis[0])
}

// refinedHomography minimises the sum of losses of the transfer errors of some matches.
func refinedHomography(list []couple, h matrix, some []int32, loss adjust.Loss) matrix {
	return minimise(h, 9, 4, func(h *matrix, n *normal) {
		for _, i := range some {
			c := &list[i]
			dx, dy, depth := c.b.off(geom.Rotate(*h, c.a.ray))
			gx, gy := c.b.slopes(dx, dy, depth)
			n.add(loss, []float64{dx, dy}, [][maxFreedoms]float64{outer(gx, c.a.ray), outer(gy, c.a.ray)})
		}
	}, func(h *matrix, step [maxFreedoms]float64) (next matrix) {
		for i := range next {
			next[i] = h[i] + step[i]
		}
		return normalised(next)
	})
}
