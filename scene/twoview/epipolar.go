package twoview

import (
	"math"

	"vksplat/internal/geom"
	"vksplat/scene/adjust"
)

// sampson returns the squared distance of a match from a b' E a = 0 in pixels, to first order in the four pixel
// coordinates. It is written in numbers, as arrays would stay in memory.
func sampson(e *matrix, a, b *Sight) float64 {
	x, y, z := a.ray[0], a.ray[1], a.ray[2]
	l, m, n := e[0]*x+e[1]*y+e[2]*z, e[3]*x+e[4]*y+e[5]*z, e[6]*x+e[7]*y+e[8]*z // E a
	x, y, z = b.ray[0], b.ray[1], b.ray[2]
	r := x*l + y*m + z*n
	u, v, w := e[0]*x+e[3]*y+e[6]*z, e[1]*x+e[4]*y+e[7]*z, e[2]*x+e[5]*y+e[8]*z // E' b
	c, d := a.dx[0]*u+a.dx[1]*v+a.dx[2]*w, a.dy[0]*u+a.dy[1]*v+a.dy[2]*w
	f, g := b.dx[0]*l+b.dx[1]*m+b.dx[2]*n, b.dy[0]*l+b.dy[1]*m+b.dy[2]*n
	return r * r / (c*c + d*d + f*f + g*g + 1e-300)
}

// epipolar is U diag(1, s, 0) V' with rotations U and V: s = 1 of an essential matrix, anything of a fundamental one
// (Bartoli, Sturm: Nonlinear Estimation of the Fundamental Matrix with Minimal Parameters, PAMI 2004).
type epipolar struct {
	u, v matrix
	s    float64
	e    matrix
}

func (p *epipolar) multiply() {
	m := p.u
	for i := range 3 {
		m[3*i+1] *= p.s
		m[3*i+2] = 0
	}
	p.e = geom.Product(m, geom.Transposed(p.v))
}

// factorised returns the factors of the matrix of rank 2 nearest to m; essential ones have s = 1.
func factorised(m *matrix, essential bool) (p epipolar, ok bool) {
	_, v := eigen(geom.Product(geom.Transposed(*m), *m))
	u1, u2 := geom.Rotate(*m, v[0]), geom.Rotate(*m, v[1])
	length := geom.Length(u1)
	u1 = geom.Scale(u1, 1/length)
	u2 = geom.Sub(u2, geom.Scale(u1, geom.Dot(u1, u2)))
	p.s = geom.Length(u2)
	u2 = geom.Scale(u2, 1/p.s)
	p.s /= length
	if essential {
		p.s = 1
	}
	p.u, p.v = columns(u1, u2, geom.Cross(u1, u2)), columns(v[0], v[1], geom.Cross(v[0], v[1]))
	p.multiply()
	return p, geom.Finite(p.e[:]...)
}

// poses returns the rotations that an essential matrix allows, and the direction of its translation, up to sign.
func (p *epipolar) poses() (r [2]matrix, t vec) {
	vt := geom.Transposed(p.v)
	turn := matrix{0, 1, 0, -1, 0, 0, 0, 0, 1}
	r[0] = geom.Product(geom.Product(p.u, turn), vt)
	r[1] = geom.Product(geom.Product(p.u, geom.Transposed(turn)), vt)
	return r, vec{p.u[2], p.u[5], p.u[8]}
}

// moved turns U by the first three numbers and V by the next three, each about its own axes, and adds the last to s.
func (p *epipolar) moved(step [maxFreedoms]float64) (q epipolar) {
	q.u = geom.Product(p.u, geom.RotationFromVector(vec(step[:3])))
	q.v = geom.Product(p.v, geom.RotationFromVector(vec(step[3:6])))
	q.s = p.s + step[6]
	q.multiply()
	return q
}

// slopes returns the signed distance of a match as in sampson and its derivatives by the steps of moved.
func (p *epipolar) slopes(a, b *Sight) (r float64, j [maxFreedoms]float64) {
	ea, eb := geom.Rotate(p.e, a.ray), transposedTimes(&p.e, b.ray)
	g := [4]float64{geom.Dot(a.dx, eb), geom.Dot(a.dy, eb), geom.Dot(b.dx, ea), geom.Dot(b.dy, ea)}
	n := math.Sqrt(g[0]*g[0] + g[1]*g[1] + g[2]*g[2] + g[3]*g[3] + 1e-300)
	r = geom.Dot(b.ray, ea) / n
	// The derivative by E is b x' + y a'.
	f := r / (n * n)
	var x, y vec
	for i := range 3 {
		x[i] = a.ray[i]/n - f*(g[0]*a.dx[i]+g[1]*a.dy[i])
		y[i] = -f * (g[2]*b.dx[i] + g[3]*b.dy[i])
	}
	ub, uy, vx, va := transposedTimes(&p.u, b.ray), transposedTimes(&p.u, y), transposedTimes(&p.v, x),
		transposedTimes(&p.v, a.ray)
	at := func(i, k int) float64 { return ub[i]*vx[k] + uy[i]*va[k] }
	s := p.s
	return r, [maxFreedoms]float64{s * at(2, 1), -at(2, 0), at(1, 0) - s*at(0, 1), s * at(1, 2), -at(0, 2),
		at(0, 1) - s*at(1, 0), at(1, 1)}
}

// couple is the two sights of a match.
type couple struct{ a, b Sight }

// refined minimises the sum of losses of Sampson's distances of some matches. Essential matrices have five freedoms:
// turns of U and V about their third axes are the same.
func (p *epipolar) refined(list []couple, some []int32, essential bool, steps int, loss adjust.Loss) epipolar {
	freedoms := 7
	if essential {
		freedoms = 5
	}
	return minimise(*p, freedoms, steps, func(p *epipolar, n *normal) {
		var j [1][maxFreedoms]float64
		var r [1]float64
		for _, i := range some {
			r[0], j[0] = p.slopes(&list[i].a, &list[i].b)
			n.add(loss, r[:], j[:])
		}
	}, func(p *epipolar, step [maxFreedoms]float64) epipolar { return p.moved(step) })
}
