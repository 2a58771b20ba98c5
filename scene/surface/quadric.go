package surface

import "vksplat/internal/geom"

const (
	// hueLength is how many voxels a surface may be wrong for what a colour may be from black to white.
	hueLength = 4
	// rimWeight is how much more an open edge counts than as long an edge within the surface.
	rimWeight = 4
	// restWeight is what keeps vertices of flat faces where they are, which nothing else does.
	restWeight = 1e-6
)

// quadric says how far a vertex is from the planes of faces, squared and times their areas (Garland and Heckbert,
// "Surface Simplification Using Quadric Error Metrics", 1997), and likewise its colour from theirs, which is linear on
// each (Hoppe, "New Quadric Metric for Simplifying Meshes with Appearance Attributes", 1999):
//
//	p'Ap + 2b'p + c, and of each of three colours s: area s² - 2s(g'p + d), whose square is in A, b and c
type quadric struct {
	a    [6]float64 // xx, xy, xz, yy, yz, zz
	b    geom.Vec
	c    float64
	g    [3]geom.Vec
	d    [3]float64
	area float64
}

func (q *quadric) add(o *quadric) {
	for i := range q.a {
		q.a[i] += o.a[i]
	}
	q.b, q.c, q.area = q.b.Add(o.b), q.c+o.c, q.area+o.area
	for k := range q.g {
		q.g[k], q.d[k] = q.g[k].Add(o.g[k]), q.d[k]+o.d[k]
	}
}

// plane adds weight times the square of n'p + d.
func (q *quadric) plane(n geom.Vec, d, weight float64) {
	q.a[0] += weight * n[0] * n[0]
	q.a[1] += weight * n[0] * n[1]
	q.a[2] += weight * n[0] * n[2]
	q.a[3] += weight * n[1] * n[1]
	q.a[4] += weight * n[1] * n[2]
	q.a[5] += weight * n[2] * n[2]
	q.b = q.b.Add(n.Mul(weight * d))
	q.c += weight * d * d
}

// ofFace is the quadric of a face; ok is false if the face has no area. Colours are lengths.
func ofFace(p, color [3]geom.Vec) (q quadric, ok bool) {
	u, v := p[1].Sub(p[0]), p[2].Sub(p[0])
	n := u.Cross(v)
	square := n.Dot(n)
	if !(square > 1e-30) {
		return q, false
	}
	q.area = n.Length() / 2
	n = n.Unit()
	q.plane(n, -n.Dot(p[0]), q.area)
	// The gradient g of a colour in the plane has g'u and g'v of its differences.
	alongU, alongV := v.Cross(n).Mul(2*q.area/square), n.Cross(u).Mul(2*q.area/square)
	for k := range 3 {
		g := alongU.Mul(color[1][k] - color[0][k]).Add(alongV.Mul(color[2][k] - color[0][k]))
		d := color[0][k] - g.Dot(p[0])
		q.plane(g, d, q.area)
		q.g[k], q.d[k] = g.Mul(q.area), d*q.area
	}
	return q, true
}

// rest adds what keeps a vertex where it is.
func (q *quadric) rest(p geom.Vec) {
	w := restWeight * q.area
	q.a[0], q.a[3], q.a[5] = q.a[0]+w, q.a[3]+w, q.a[5]+w
	q.b = q.b.Sub(p.Mul(w))
	q.c += w * p.Dot(p)
}

// rim adds the plane through an open edge of a face that stands upright on it.
func (q *quadric) rim(from, to, normal geom.Vec) {
	e := to.Sub(from)
	n := e.Cross(normal)
	if length := n.Length(); length > 0 {
		n = n.Mul(1 / length)
		q.plane(n, -n.Dot(from), rimWeight*e.Dot(e))
	}
}

// withoutColor is A and b with the colours that are best at each place.
func (q *quadric) withoutColor() (a [6]float64, b geom.Vec) {
	a, b = q.a, q.b
	for k := range 3 {
		g := q.g[k]
		w := 1 / q.area
		a[0] -= w * g[0] * g[0]
		a[1] -= w * g[0] * g[1]
		a[2] -= w * g[0] * g[2]
		a[3] -= w * g[1] * g[1]
		a[4] -= w * g[1] * g[2]
		a[5] -= w * g[2] * g[2]
		b = b.Sub(g.Mul(w * q.d[k]))
	}
	return a, b
}

// best is the place where the error is least, if there is one.
func (q *quadric) best() (p geom.Vec, ok bool) {
	a, b := q.withoutColor()
	columns := [3]geom.Vec{{a[0], a[1], a[2]}, {a[1], a[3], a[4]}, {a[2], a[4], a[5]}}
	det := columns[0].Dot(columns[1].Cross(columns[2]))
	trace := a[0] + a[3] + a[5]
	if !(det > 1e-14*trace*trace*trace) {
		return p, false
	}
	p[0] = -b.Dot(columns[1].Cross(columns[2])) / det
	p[1] = -columns[0].Dot(b.Cross(columns[2])) / det
	p[2] = -columns[0].Dot(columns[1].Cross(b)) / det
	return p, true
}

// at is the colour that is best at a place, and the error of both.
func (q *quadric) at(p geom.Vec) (color geom.Vec, cost float64) {
	cost = q.a[0]*p[0]*p[0] + q.a[3]*p[1]*p[1] + q.a[5]*p[2]*p[2] +
		2*(q.a[1]*p[0]*p[1]+q.a[2]*p[0]*p[2]+q.a[4]*p[1]*p[2]+q.b.Dot(p)) + q.c
	for k := range 3 {
		s := (q.g[k].Dot(p) + q.d[k]) / q.area
		color[k] = min(max(s, 0), hueLength)
		cost += q.area * color[k] * (color[k] - 2*s)
	}
	return color, max(cost, 0)
}
