package adjust

import (
	"vksplat/internal/geom"
	"vksplat/internal/parallel"
)

// leastDamping bounds the damped diagonal from below, so that a variable that nothing determines stays where it is.
const leastDamping = 1e-12

// pairOf returns the pair of a point and a lens; -1 for a lens that is fixed.
func (y *system) pairOf(point, lens int32) int {
	for i := y.pairStart[point]; i < y.pairStart[point+1]; i++ {
		if y.pairLens[i] == lens {
			return int(i)
		}
	}
	return -1
}

// damp inverts the points' damped parts. Points that stay, and those that nothing determines, have zeros.
func (y *system) damp(lambda float64) {
	chunks(len(y.v), func(from, to int) float64 {
		for i := from; i < to; i++ {
			v := y.v[i]
			for _, d := range [3]int{0, 3, 5} {
				v[d] += lambda * max(v[d], leastDamping)
			}
			y.inverse[i] = [6]float64{}
			if !y.p.PointsFixed {
				y.inverse[i] = invert(v)
			}
		}
		return 0
	})
}

// invert inverts a symmetric matrix given as its upper triangle; zeros for one that is not positive definite.
func invert(m [6]float64) (r [6]float64) {
	a, b, c, d, e, f := m[0], m[1], m[2], m[3], m[4], m[5]
	r = [6]float64{d*f - e*e, c*e - b*f, b*e - c*d, a*f - c*c, b*c - a*e, a*d - b*b}
	det := a*r[0] + b*r[1] + c*r[2]
	if !(a > 0 && r[5] > 0 && det > 0) {
		return [6]float64{}
	}
	for i := range r {
		r[i] /= det
	}
	return r
}

// times returns the product of a symmetric matrix, as its upper triangle, and a vector.
func times(m *[6]float64, x []float64) [3]float64 {
	return [3]float64{m[0]*x[0] + m[1]*x[1] + m[2]*x[2], m[1]*x[0] + m[3]*x[1] + m[4]*x[2],
		m[2]*x[0] + m[4]*x[1] + m[5]*x[2]}
}

// reduce computes diagonal and gradient of the cameras' part of J'J, and the reduced system, in which the points are
// eliminated (Schur complement). A goroutine owns whole rows.
func (y *system) reduce(s *state, lambda float64) {
	y.damp(lambda)
	nodes := len(y.columns)
	parallel.Workers(nodes, nodes, func() func(i int) {
		at := make([]int, nodes) // of a column in the row's blocks
		return func(i int) {
			a := (len(y.p.Poses) + i) % nodes // those that take longest begin first: lenses, then poses in order
			if y.dims(a) == 0 {
				return
			}
			next := 0
			for _, b := range y.columns[a] {
				at[b] = next
				next += y.dims(a) * y.dims(int(b))
			}
			clear(y.blocks[a])
			if lens := a - len(y.p.Poses); lens >= 0 {
				y.lensRow(s, lens, at)
			} else {
				y.poseRow(s, int32(a), at)
			}
			n, first := y.dims(a), y.offset[a]
			for i := range n {
				y.blocks[a][i*n+i] += lambda * max(y.diag[first+i], leastDamping)
			}
		}
	})
}

// poseRow fills the row of a pose.
func (y *system) poseRow(s *state, a int32, at []int) {
	block, first := y.blocks[a], y.offset[a]
	var grad, less [6]float64
	var own [36]float64 // before anything is eliminated
	for _, r := range y.poseRows[a] {
		row := &y.rows[r]
		x := &s.points[row.point]
		arm := geom.Sub(*x, y.centres[a])
		addBlock(&own, &arm, &arm, &geom.Identity, &row.square)
		addMoment(&grad, &arm, &row.grad)
		answer := y.answer(row)
		eliminated := geom.Rotate(answer, y.pointGrad[row.point])
		addMoment(&less, &arm, &eliminated)
		for i := y.pointStart[row.point]; i < y.pointStart[row.point+1]; i++ {
			other := &y.rows[i]
			if b := other.pose; b >= a && y.offset[b] < y.offset[b+1] {
				away := geom.Sub(*x, y.centres[b])
				addBlock((*[36]float64)(block[at[b]:]), &arm, &away, &answer, &other.square)
			}
		}
		for i := y.pairStart[row.point]; i < y.pairStart[row.point+1]; i++ {
			lens := int(y.pairLens[i])
			var byLens []float64
			if lens == s.poses[a].Lens {
				byLens = y.byLens[3*y.width*int(r):]
			}
			y.addLensBlock(block[at[len(s.poses)+lens]:], lens, &arm, &answer, y.z[3*y.width*int(i):], byLens)
		}
	}
	addTo(block[:36], own[:])
	for i := range 6 {
		y.diag[first+i], y.grad[first+i], y.rhs[first+i] = own[6*i+i], grad[i], -grad[i]-less[i]
	}
}

// answer returns what the elimination of a row's point multiplies by the point's other products: less J'J by the point
// times the point's inverse.
func (y *system) answer(r *row) [9]float64 {
	a, b, c, d, e, f := r.square[0], r.square[1], r.square[2], r.square[3], r.square[4], r.square[5]
	v := &y.inverse[r.point]
	g, h, i, j, k, l := -v[0], -v[1], -v[2], -v[3], -v[4], -v[5]
	return [9]float64{
		a*g + b*h + c*i, a*h + b*j + c*k, a*i + b*k + c*l,
		b*g + d*h + e*i, b*h + d*j + e*k, b*i + d*k + e*l,
		c*g + e*h + f*i, c*h + e*j + f*k, c*i + e*k + f*l,
	}
}

// addLensBlock adds to the block of a pose and a lens what a point adds whose arm is from the pose: its products with
// the lens, eliminated, and byLens if the pose has that lens.
func (y *system) addLensBlock(block []float64, lens int, arm *[3]float64, answer *[9]float64, z, byLens []float64) {
	n := len(y.free[lens])
	x0, x1, x2 := arm[0], arm[1], arm[2]
	t0, t1, t2 := block[:n], block[n:2*n], block[2*n:3*n]
	m0, m1, m2 := block[3*n:4*n], block[4*n:5*n], block[5*n:6*n]
	for k := range n {
		w := (*[3]float64)(z[3*k:])
		a := answer[0]*w[0] + answer[1]*w[1] + answer[2]*w[2]
		b := answer[3]*w[0] + answer[4]*w[1] + answer[5]*w[2]
		c := answer[6]*w[0] + answer[7]*w[1] + answer[8]*w[2]
		if byLens != nil {
			w := (*[3]float64)(byLens[3*k:])
			a, b, c = a+w[0], b+w[1], c+w[2]
		}
		t0[k], t1[k], t2[k] = t0[k]+x1*c-x2*b, t1[k]+x2*a-x0*c, t2[k]+x0*b-x1*a
		m0[k], m1[k], m2[k] = m0[k]+a, m1[k]+b, m2[k]+c
	}
}

// addMoment adds a gradient by a point as one by a pose, the point's arm from which is given.
func addMoment(to *[6]float64, x, g *[3]float64) {
	to[0] += x[1]*g[2] - x[2]*g[1]
	to[1] += x[2]*g[0] - x[0]*g[2]
	to[2] += x[0]*g[1] - x[1]*g[0]
	to[3], to[4], to[5] = to[3]+g[0], to[4]+g[1], to[5]+g[2]
}

// addBlock adds the product k q of derivatives by a point, q symmetric, as one by two poses from which the point has
// the arms x and y: with [x] as the matrix of the cross product,
//
//	( [x] k q [y]'  [x] k q )
//	(     k q [y]'      k q )
func addBlock(to *[36]float64, x, y *[3]float64, k *[9]float64, q *[6]float64) {
	q0, q1, q2, q3, q4, q5 := q[0], q[1], q[2], q[3], q[4], q[5]
	a0, a1, a2 := k[0]*q0+k[1]*q1+k[2]*q2, k[0]*q1+k[1]*q3+k[2]*q4, k[0]*q2+k[1]*q4+k[2]*q5
	b0, b1, b2 := k[3]*q0+k[4]*q1+k[5]*q2, k[3]*q1+k[4]*q3+k[5]*q4, k[3]*q2+k[4]*q4+k[5]*q5
	c0, c1, c2 := k[6]*q0+k[7]*q1+k[8]*q2, k[6]*q1+k[7]*q3+k[8]*q4, k[6]*q2+k[7]*q4+k[8]*q5
	x0, x1, x2 := x[0], x[1], x[2]
	addBlockRow((*[6]float64)(to[0:]), y, x1*c0-x2*b0, x1*c1-x2*b1, x1*c2-x2*b2)
	addBlockRow((*[6]float64)(to[6:]), y, x2*a0-x0*c0, x2*a1-x0*c1, x2*a2-x0*c2)
	addBlockRow((*[6]float64)(to[12:]), y, x0*b0-x1*a0, x0*b1-x1*a1, x0*b2-x1*a2)
	addBlockRow((*[6]float64)(to[18:]), y, a0, a1, a2)
	addBlockRow((*[6]float64)(to[24:]), y, b0, b1, b2)
	addBlockRow((*[6]float64)(to[30:]), y, c0, c1, c2)
}

func addBlockRow(to *[6]float64, y *[3]float64, a, b, c float64) {
	to[0] += y[1]*c - y[2]*b
	to[1] += y[2]*a - y[0]*c
	to[2] += y[0]*b - y[1]*a
	to[3] += a
	to[4] += b
	to[5] += c
}

// lensRow fills the row of a lens. Most points may be its own, so that they are summed in parts, by several goroutines.
func (y *system) lensRow(s *state, lens int, at []int) {
	a := len(y.p.Poses) + lens
	n, first, block := y.dims(a), y.offset[a], y.blocks[a]
	size, t, w := len(block), triangle(n), y.width
	list := y.lensPairs[lens]
	sums := sumParts(len(list), size+t+2*n, func(from, to int, sums []float64) {
		answer := make([]float64, 3*n)
		block, square, grad, rhs := sums[:size], sums[size:size+t], sums[size+t:size+t+n], sums[size+t+n:]
		for _, p := range list[from:to] {
			own := y.own[y.ownSize()*int(p.index):]
			addTo(square, own)
			addTo(grad, own[triangle(w):])
			for i := range n {
				v := times(&y.inverse[p.point], y.z[3*(w*int(p.index)+i):])
				copy(answer[3*i:], v[:])
				rhs[i] += geom.Dot(v, y.pointGrad[p.point])
			}
			for i := p.index; i < y.pairStart[p.point+1]; i++ {
				b := len(y.p.Poses) + int(y.pairLens[i])
				subtractProduct(block[at[b]:], answer, y.z[3*w*int(i):], n, y.dims(b))
			}
		}
	})
	addTo(block, sums)
	l := &y.p.Lenses[lens]
	for i, param := range y.free[lens] {
		for k := range i {
			v := sums[size+triangle(i)+k]
			block[i*n+k] += v
			block[k*n+i] += v
		}
		diag, grad := sums[size+triangle(i)+i], sums[size+t+i]
		if sigma := l.Sigma[param]; sigma > 0 {
			grad += (s.params[lens][param] - l.Params[param]) / (sigma * sigma)
			diag += 1 / (sigma * sigma)
		}
		block[i*n+i] += diag
		y.diag[first+i], y.grad[first+i], y.rhs[first+i] = diag, grad, sums[size+t+n+i]-grad
	}
}

// mostParts bounds the memory of parts: a lens of 2,000 photos takes 800 kB for each.
const mostParts = 64

// sumParts calls f for parts of n things, each with sums of its own, and returns the sums of all.
func sumParts(n, sums int, f func(from, to int, sums []float64)) []float64 {
	size := max(chunk, (n+mostParts-1)/mostParts)
	list := make([][]float64, max(1, (n+size-1)/size))
	list[0] = make([]float64, sums)
	parallel.For((n+size-1)/size, func(i int) {
		part := make([]float64, sums)
		f(i*size, min(n, (i+1)*size), part)
		list[i] = part
	})
	for _, part := range list[1:] {
		addTo(list[0], part)
	}
	return list[0]
}

func addTo(to, from []float64) {
	for i := range to {
		to[i] += from[i]
	}
}

// subtractProduct computes c -= a b', for a of n rows of 3 and b of m rows of 3.
func subtractProduct(c, a, b []float64, n, m int) {
	for i := range n {
		a0, a1, a2 := a[3*i], a[3*i+1], a[3*i+2]
		for k := range m {
			c[i*m+k] -= a0*b[3*k] + a1*b[3*k+1] + a2*b[3*k+2]
		}
	}
}

// moves computes the steps of the points from those of the cameras.
func (y *system) moves(s *state, step []float64) [][3]float64 {
	moves := make([][3]float64, len(y.v))
	poses := len(y.p.Poses)
	chunks(len(moves), func(from, to int) float64 {
		for i := from; i < to; i++ {
			g := y.pointGrad[i]
			for r := y.pointStart[i]; r < y.pointStart[i+1]; r++ {
				row := &y.rows[r]
				if d := step[y.offset[row.pose]:y.offset[row.pose+1]]; len(d) > 0 {
					arm := geom.Sub(s.points[i], y.centres[row.pose])
					move := times(&row.square, d[3:])
					turn := geom.Cross([3]float64(d), arm)
					g = geom.Add(g, geom.Add(move, times(&row.square, turn[:])))
				}
			}
			for k := y.pairStart[i]; k < y.pairStart[i+1]; k++ {
				node := poses + int(y.pairLens[k])
				addTransposed(&g, y.z[3*y.width*int(k):], step[y.offset[node]:y.offset[node+1]])
			}
			moves[i] = geom.Scale(times(&y.inverse[i], g[:]), -1)
		}
		return 0
	})
	return moves
}

// addTransposed adds w' x, for w of rows of 3.
func addTransposed(g *[3]float64, w, x []float64) {
	for i, v := range x {
		for k := range 3 {
			g[k] += w[3*i+k] * v
		}
	}
}
