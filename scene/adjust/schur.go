package adjust

import (
	"vksplat/internal/geom"
	"vksplat/internal/parallel"
)

// leastDamping bounds the damped diagonal from below, so that a variable that nothing determines stays where it is.
const leastDamping = 1e-12

// pointParts computes each point's part of J'J and J'r, and its products with poses and lenses.
func (y *system) pointParts(s *state) {
	chunks(len(y.p.Points), func(from, to int) float64 {
		for i := from; i < to; i++ {
			y.pointPart(s, int32(i))
		}
		return 0
	})
}

func (y *system) pointPart(s *state, point int32) {
	v, g := [6]float64{}, [3]float64{}
	clear(y.z[3*y.width*int(y.pairStart[point]) : 3*y.width*int(y.pairStart[point+1])])
	for r := y.pointStart[point]; r < y.pointStart[point+1]; r++ {
		row := &y.rows[r]
		pose := y.obs[r].Pose
		j := row.byPoint(&s.poses[pose].R)
		p := &row.byPose
		for a := range 2 {
			x := &j[a]
			for k, at := range [6][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}} {
				v[k] += x[at[0]] * x[at[1]]
			}
			for k := range 3 {
				g[k] += x[k] * row.residual[a]
			}
		}
		w := &y.w[r]
		for i := range 6 {
			for k := range 3 {
				w[3*i+k] = p[0][i]*j[0][k] + p[1][i]*j[1][k]
			}
		}
		if z := y.pairOf(point, int32(s.poses[pose].Lens)); z != nil {
			byLens := y.byLens[2*y.width*int(r):]
			for i := range y.width {
				for k := range 3 {
					z[3*i+k] += byLens[i]*j[0][k] + byLens[y.width+i]*j[1][k]
				}
			}
		}
	}
	y.v[point], y.pointGrad[point] = v, g
}

// pairOf returns the numbers of a point and a lens, or nil for a lens that is fixed.
func (y *system) pairOf(point, lens int32) []float64 {
	for i := y.pairStart[point]; i < y.pairStart[point+1]; i++ {
		if y.pairLens[i] == lens {
			return y.z[3*y.width*int(i) : 3*y.width*int(i+1)]
		}
	}
	return nil
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
			a := nodes - 1 - i // a lens that all photos share takes longest, so it begins first
			if y.dims(a) == 0 {
				return
			}
			next := 0
			for _, b := range y.columns[a] {
				at[b] = next
				next += y.dims(a) * y.dims(int(b))
			}
			clear(y.blocks[a])
			clear(y.grad[y.offset[a]:y.offset[a+1]])
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
	grad, rhs := y.grad[first:first+6], y.rhs[first:first+6]
	clear(rhs)
	lens := len(y.p.Poses) + s.poses[a].Lens
	var byLens []float64
	n := y.dims(lens)
	if n > 0 {
		byLens = block[at[lens]:]
	}
	var own [36]float64 // before anything is eliminated
	for _, r := range y.poseRows[a] {
		row, l := &y.rows[r], y.byLens[2*y.width*int(r):]
		p := &row.byPose
		for i := range 6 {
			grad[i] += p[0][i]*row.residual[0] + p[1][i]*row.residual[1]
			for k := range 6 {
				own[6*i+k] += p[0][i]*p[0][k] + p[1][i]*p[1][k]
			}
			for k := range n {
				byLens[i*n+k] += p[0][i]*l[k] + p[1][i]*l[y.width+k]
			}
		}
		point := y.obs[r].Point
		var answer [18]float64 // W V^-1
		solvePoint(&y.inverse[point], y.w[r][:], answer[:])
		y.subtract(block, a, point, answer[:], 6, at)
		y.subtractPoint(point, answer[:], rhs)
	}
	addTo(block[:36], own[:])
	for i := range 6 {
		y.diag[first+i] = own[6*i+i]
		rhs[i] -= grad[i]
	}
}

// lensRow fills the row of a lens. Most rows and points may be its own, so that they are summed in parts, by several
// goroutines.
func (y *system) lensRow(s *state, lens int, at []int) {
	a := len(y.p.Poses) + lens
	n, first, block := y.dims(a), y.offset[a], y.blocks[a]
	grad, rhs := y.grad[first:first+n], y.rhs[first:first+n]
	clear(rhs)
	own := sumParts(len(y.lensRows[lens]), n*n+n, func(from, to int, sums []float64) {
		for _, r := range y.lensRows[lens][from:to] {
			byLens, residual := y.byLens[2*y.width*int(r):], &y.rows[r].residual
			for i := range n {
				sums[n*n+i] += byLens[i]*residual[0] + byLens[y.width+i]*residual[1]
				for k := range n {
					sums[i*n+k] += byLens[i]*byLens[k] + byLens[y.width+i]*byLens[y.width+k]
				}
			}
		}
	})
	addTo(block[:n*n], own)
	addTo(grad, own[n*n:])
	l := &y.p.Lenses[lens]
	for i, param := range y.free[lens] {
		if sigma := l.Sigma[param]; sigma > 0 {
			grad[i] += (s.params[lens][param] - l.Params[param]) / (sigma * sigma)
			block[i*n+i] += 1 / (sigma * sigma)
		}
		y.diag[first+i] = block[i*n+i]
	}
	size := len(block)
	eliminated := sumParts(len(y.lensPairs[lens]), size+n, func(from, to int, sums []float64) {
		answer := make([]float64, 3*n)
		for _, p := range y.lensPairs[lens][from:to] {
			solvePoint(&y.inverse[p.point], y.z[3*y.width*int(p.index):], answer)
			y.subtract(sums[:size], int32(a), p.point, answer, n, at)
			y.subtractPoint(p.point, answer, sums[size:])
		}
	})
	addTo(block, eliminated)
	addTo(rhs, eliminated[size:])
	for i := range n {
		rhs[i] -= grad[i]
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

// solvePoint computes w V^-1 for rows of three numbers.
func solvePoint(inverse *[6]float64, w, out []float64) {
	for i := 0; i < len(out); i += 3 {
		r := times(inverse, w[i:i+3])
		copy(out[i:i+3], r[:])
	}
}

// subtract takes the products of a node's answer with all nodes from it on that see the point off the node's row,
// block.
func (y *system) subtract(block []float64, a, point int32, answer []float64, n int, at []int) {
	poses := int32(len(y.p.Poses))
	for r := y.pointStart[point]; r < y.pointStart[point+1]; r++ {
		b := y.obs[r].Pose
		switch {
		case b < a || y.dims(int(b)) == 0:
		case n == 6:
			subtractPoses((*[36]float64)(block[at[b]:]), (*[18]float64)(answer), &y.w[r])
		default:
			subtractProduct(block[at[b]:], answer, y.w[r][:], n, 6)
		}
	}
	for i := y.pairStart[point]; i < y.pairStart[point+1]; i++ {
		if b := poses + y.pairLens[i]; b >= a {
			subtractProduct(block[at[b]:], answer, y.z[3*y.width*int(i):], n, y.dims(int(b)))
		}
	}
}

// subtractPoses is subtractProduct of two poses.
func subtractPoses(c *[36]float64, a, b *[18]float64) {
	for i := range 6 {
		a0, a1, a2 := a[3*i], a[3*i+1], a[3*i+2]
		for k := range 6 {
			c[6*i+k] -= a0*b[3*k] + a1*b[3*k+1] + a2*b[3*k+2]
		}
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

// subtractPoint adds the point's answer to a node's right-hand side.
func (y *system) subtractPoint(point int32, answer, rhs []float64) {
	g := y.pointGrad[point]
	for i := range rhs {
		rhs[i] += geom.Dot([3]float64(answer[3*i:]), g)
	}
}

// moves computes the steps of the points from those of the cameras.
func (y *system) moves(step []float64) [][3]float64 {
	moves := make([][3]float64, len(y.v))
	poses := len(y.p.Poses)
	chunks(len(moves), func(from, to int) float64 {
		for i := from; i < to; i++ {
			g := y.pointGrad[i]
			for r := y.pointStart[i]; r < y.pointStart[i+1]; r++ {
				node := int(y.obs[r].Pose)
				addTransposed(&g, y.w[r][:], step[y.offset[node]:y.offset[node+1]])
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
