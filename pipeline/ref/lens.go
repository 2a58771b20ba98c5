package ref

import "vksplat/shaders/layout"

// twin: project_lens project_bwd_adam_lens

// Lens is the distortion of a camera in the plane of its model: scene.Distortion. A view with one is projected as
// without it, to a plane of focal length 1; the lens then moves places, and its own Jacobian shapes covariances.
type Lens[T Real] struct {
	Num            [6]T // radial factor (1 + Num[0] r^2 + ...) / (1 + Den[0] r^2 + ...)
	Den            [3]T
	P1, P2         T // tangential
	PrismX, PrismY [2]T
	After          bool // tangential and prism terms are functions of the radially distorted point
	Skew           T
	Limit          T    // radius beyond which nothing is seen
	Lo, Hi         [2]T // corners of what the photo shows of the plane; outside the lens goes on as at the border
	Margin         [2]T // the pinhole Jacobian is evaluated at x/z and y/z at most this far outside
	Wide           bool // the lens sees what is beside the camera and behind it
}

// ConvertLens copies a lens into another arithmetic; l may be nil.
func ConvertLens[To, From Real](l *Lens[From]) *Lens[To] {
	if l == nil {
		return nil
	}
	c := &Lens[To]{P1: To(l.P1), P2: To(l.P2), After: l.After, Skew: To(l.Skew), Limit: To(l.Limit), Wide: l.Wide}
	for _, pair := range []struct {
		to   []To
		from []From
	}{{c.Num[:], l.Num[:]}, {c.Den[:], l.Den[:]}, {c.PrismX[:], l.PrismX[:]}, {c.PrismY[:], l.PrismY[:]},
		{c.Lo[:], l.Lo[:]}, {c.Hi[:], l.Hi[:]}, {c.Margin[:], l.Margin[:]}} {
		copy(pair.to, ConvertSlice[To](pair.from))
	}
	return c
}

// mat2 is a 2x2 matrix of rows.
type mat2[T Real] [2][2]T

func (a mat2[T]) mul(b mat2[T]) (c mat2[T]) {
	for i := range c {
		for j := range c {
			c[i][j] = a[i][0]*b[0][j] + a[i][1]*b[1][j]
		}
	}
	return c
}

func (a mat2[T]) mul23(b mat23[T]) (c mat23[T]) {
	for i := range c {
		for j := range c[i] {
			c[i][j] = a[i][0]*b[0][j] + a[i][1]*b[1][j]
		}
	}
	return c
}

func (a mat2[T]) apply(u [2]T) [2]T {
	return [2]T{a[0][0]*u[0] + a[0][1]*u[1], a[1][0]*u[0] + a[1][1]*u[1]}
}

func (a mat2[T]) transposed() mat2[T] { return mat2[T]{{a[0][0], a[1][0]}, {a[0][1], a[1][1]}} }

// series is a polynomial in s with its first two derivatives.
func series[T Real](c []T, s T) (f, f1, f2 T) {
	f = 1
	power, before, earlier := s, T(1), T(0) // s^k, s^(k-1), s^(k-2)
	for i, x := range c {
		k := T(i + 1)
		f += x * power
		f1 += k * x * before
		f2 += k * (k - 1) * x * earlier
		power, before, earlier = power*s, power, before
	}
	return f, f1, f2
}

// radial is the factor of the radius and its derivatives by s = r^2.
func (l *Lens[T]) radial(s T) (f, f1, f2 T) {
	n, n1, n2 := series(l.Num[:], s)
	d, d1, d2 := series(l.Den[:], s)
	f = n / d
	f1 = (n1*d - n*d1) / (d * d)
	return f, f1, (n2 - 2*f1*d1 - f*d2) / d
}

// radially distorts by the radius alone, with the Jacobian.
func (l *Lens[T]) radially(u [2]T) (a [2]T, slope mat2[T]) {
	f, f1, _ := l.radial(u[0]*u[0] + u[1]*u[1])
	for i := range a {
		a[i] = f * u[i]
		for j := range a {
			slope[i][j] = 2 * f1 * u[i] * u[j]
		}
		slope[i][i] += f
	}
	return a, slope
}

// shift is what tangential and prism terms add, with the Jacobian.
func (l *Lens[T]) shift(w [2]T) (a [2]T, slope mat2[T]) {
	x, y := w[0], w[1]
	s := x*x + y*y
	a[0] = 2*l.P1*x*y + l.P2*(s+2*x*x) + l.PrismX[0]*s + l.PrismX[1]*s*s
	a[1] = 2*l.P2*x*y + l.P1*(s+2*y*y) + l.PrismY[0]*s + l.PrismY[1]*s*s
	qx, qy := 2*l.PrismX[0]+4*l.PrismX[1]*s, 2*l.PrismY[0]+4*l.PrismY[1]*s
	slope[0] = [2]T{2*l.P1*y + 6*l.P2*x + qx*x, 2*l.P1*x + 2*l.P2*y + qx*y}
	slope[1] = [2]T{2*l.P2*y + 2*l.P1*x + qy*x, 2*l.P2*x + 6*l.P1*y + qy*y}
	return a, slope
}

// shown is the place of what the photo shows that is nearest to u.
func (l *Lens[T]) shown(u [2]T) (c [2]T) {
	for i := range c {
		c[i] = min(max(u[i], l.Lo[i]), l.Hi[i])
	}
	return c
}

// bend distorts a point of the plane, with the Jacobian.
func (l *Lens[T]) bend(u [2]T) (a [2]T, slope mat2[T]) {
	c := l.shown(u)
	a, slope = l.distort(c)
	beyond := slope.apply([2]T{u[0] - c[0], u[1] - c[1]})
	return [2]T{a[0] + beyond[0], a[1] + beyond[1]}, slope
}

// distort is bend of a point that the photo shows.
func (l *Lens[T]) distort(u [2]T) (a [2]T, slope mat2[T]) {
	a, slope = l.radially(u)
	w := u
	if l.After {
		w = a
	}
	b, more := l.shift(w)
	if l.After {
		more = more.mul(slope)
	}
	for i := range a {
		a[i] += b[i]
		slope[i][0] += more[i][0]
		slope[i][1] += more[i][1]
	}
	return a, slope
}

// slopeVJP is the gradient of u through the Jacobian of distort, given g = dL/d(its elements).
func (l *Lens[T]) slopeVJP(u [2]T, g mat2[T]) (v [2]T) {
	s := u[0]*u[0] + u[1]*u[1]
	_, f1, f2 := l.radial(s)
	a, slope := l.radially(u)
	w, ofShift, ofRadial := u, g, g
	if l.After {
		_, more := l.shift(a)
		w, ofShift = a, g.mul(slope.transposed())
		back := more.transposed().mul(g)
		for i := range back {
			ofRadial[i][0] += back[i][0]
			ofRadial[i][1] += back[i][1]
		}
	}
	v = l.shiftSlopeVJP(w, ofShift)
	if l.After {
		v = slope.transposed().apply(v)
	}
	// The Jacobian of F u is F I + 2 F' u u^T.
	gu, ug := ofRadial.apply(u), ofRadial.transposed().apply(u)
	along := u[0]*gu[0] + u[1]*gu[1]
	for i := range v {
		v[i] += 2*f1*(ofRadial[0][0]+ofRadial[1][1])*u[i] + 4*f2*along*u[i] + 2*f1*(gu[i]+ug[i])
	}
	return v
}

// shiftSlopeVJP is the gradient of w through the Jacobian of shift.
func (l *Lens[T]) shiftSlopeVJP(w [2]T, g mat2[T]) (v [2]T) {
	mixed := g[0][1] + g[1][0]
	v[0] = 6*l.P2*g[0][0] + 2*l.P1*mixed + 2*l.P2*g[1][1]
	v[1] = 2*l.P1*g[0][0] + 2*l.P2*mixed + 6*l.P1*g[1][1]
	s := w[0]*w[0] + w[1]*w[1]
	for row, prism := range [2][2]T{l.PrismX, l.PrismY} {
		along := g[row][0]*w[0] + g[row][1]*w[1]
		for i := range v {
			v[i] += (2*prism[0]+4*prism[1]*s)*g[row][i] + 8*prism[1]*along*w[i]
		}
	}
	return v
}

// focal takes focal lengths to pixels.
func (v *View[T]) focal() mat2[T] {
	f := mat2[T]{{v.Fx, v.Fx * v.Lens.Skew}, {0, v.Fy}}
	if v.sheared != nil {
		f = v.sheared.by.mul(f)
	}
	return f
}

// plane is the view that projects to the plane that the lens bends.
func (v *View[T]) plane() *View[T] {
	p := *v
	p.Fx, p.Fy, p.Cx, p.Cy, p.Lens, p.limits, p.sheared = 1, 1, 0, 0, nil, v.Lens, nil
	return &p
}

// depth is what splats are in front of each other by: camera z, or beside the camera a share of the distance. sees says
// whether the view may show it.
func (v *View[T]) depth(p vec3[T]) (z T, sees bool) {
	z, near := p[2], p[2]
	if v.Lens != nil {
		u := v.plane().projectPoint(p)
		if !(u[0]*u[0]+u[1]*u[1] <= v.Lens.Limit*v.Lens.Limit) {
			return z, false
		}
		if v.Lens.Wide { // near goes by the distance at every angle
			near = sqrt(p.dot(p))
			z = max(z, layout.LensSide*near)
		}
	}
	return z, near > v.Near && z < 3.4e38
}

func (v *View[T]) lensPoint(p vec3[T]) [2]T {
	bent, _ := v.Lens.bend(v.plane().projectPoint(p))
	at, centre := v.focal().apply(bent), [2]T{v.Cx, v.Cy}
	if s := v.sheared; s != nil {
		centre = s.by.apply(centre)
		centre = [2]T{centre[0] + s.off[0], centre[1] + s.off[1]}
	}
	return [2]T{at[0] + centre[0], at[1] + centre[1]}
}

func (v *View[T]) lensJacobian(p vec3[T]) mat23[T] {
	plane := v.plane()
	_, slope := v.Lens.bend(plane.projectPoint(p))
	return v.focal().mul(slope).mul23(plane.jacobian(p))
}

// lensVJP is pointVJP of a view with a lens.
func (v *View[T]) lensVJP(p vec3[T], vMean [2]T, vJ mat23[T]) vec3[T] {
	plane := v.plane()
	u, j := plane.projectPoint(p), plane.jacobian(p)
	_, slope := v.Lens.bend(u)
	back := v.focal().transposed()
	vJ = back.mul23(vJ)
	c, vAt := v.Lens.shown(u), back.apply(vMean)
	var ofSlope mat2[T]
	for r := range ofSlope {
		for k := range ofSlope {
			ofSlope[r][k] = vJ.row(r).dot(j.row(k)) + vAt[r]*(u[k]-c[k])
		}
	}
	vU, more := slope.transposed().apply(vAt), v.Lens.slopeVJP(c, ofSlope)
	for i := range vU {
		if u[i] == c[i] {
			vU[i] += more[i]
		}
	}
	return plane.pointVJP(p, vU, slope.transposed().mul23(vJ))
}
