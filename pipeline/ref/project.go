package ref

import "math"

// twin: project project_pages

// Projected is a splat as blending sees it.
type Projected[T Real] struct {
	Mean2D  [2]T // px
	Conic   [3]T // inverse 2D covariance xx, xy, yy, px^-2
	Opacity T    // activated, compensated when antialiased
	Color   [3]T // max(SH + 0.5, 0)
}

type Projection[T Real] struct {
	Splats []Projected[T] // [N] zero where culled
	// Extents of the ellipse on which alpha falls to AlphaThreshold, px: largest |dx|, largest |dy|, half its width
	// along dy = 0. [N], zero where culled.
	Extents   [][3]T
	DepthKeys []uint32 // [N] bits of float32 camera z, or Culled
}

// Visible reports whether the view sees splat i.
func (p *Projection[T]) Visible(i int) bool { return p.DepthKeys[i] != Culled }

// footprint is the 2D covariance b b^T of a splat with its pieces.
type footprint[T Real] struct {
	rotation mat3[T]  // of the splat
	scales   vec3[T]  // activated
	jw       mat23[T] // d(image)/d(world)
	b        mat23[T] // J W R S
	cov      sym2[T]  // b b^T with Eps2D on the diagonal, px^2
	det      T        // of cov; from sums of squares, so it never cancels below zero
	detRaw   T        // of b b^T
}

func newFootprint[T Real](jw mat23[T], q [4]T, scales vec3[T]) footprint[T] {
	f := footprint[T]{rotation: quatRotation(q), scales: scales, jw: jw}
	f.b = jw.mul(f.rotation)
	for k, s := range scales {
		f.b[0][k] *= s
		f.b[1][k] *= s
	}
	u, w := f.b.row(0), f.b.row(1)
	// Cauchy-Binet: the determinant of b b^T is the sum of the squared 2x2 minors of b.
	minors := u.cross(w)
	f.detRaw = minors.dot(minors)
	xx, yy := u.dot(u), w.dot(w)
	f.cov = sym2[T]{xx + Eps2D, u.dot(w), yy + Eps2D}
	f.det = f.detRaw + Eps2D*(xx+yy) + Eps2D*Eps2D
	return f
}

func (f *footprint[T]) conic() sym2[T] {
	return sym2[T]{f.cov[2] / f.det, -f.cov[1] / f.det, f.cov[0] / f.det}
}

// compensation is sqrt(det before / det after the low-pass filter).
func (f *footprint[T]) compensation() T { return sqrt(f.detRaw / f.det) }

// Project culls every splat against the view and projects the rest (Kerbl et al. 2023, section 4; antialiasing Yu et
// al. 2024).
func Project[T Real](p *Params[T], v *View[T]) *Projection[T] {
	out := &Projection[T]{Splats: make([]Projected[T], p.N), Extents: make([][3]T, p.N), DepthKeys: make([]uint32, p.N)}
	for i := range p.N {
		out.DepthKeys[i] = Culled
		s, e, depth, ok := projectSplat(p, v, i)
		if ok {
			out.Splats[i], out.Extents[i], out.DepthKeys[i] = s, e, math.Float32bits(float32(depth))
		}
	}
	return out
}

// projectSplat projects splat i. Every guard is phrased so that a NaN fails it.
func projectSplat[T Real](p *Params[T], v *View[T], i int) (s Projected[T], e [3]T, depth T, ok bool) {
	mean, middle := p.mean(i), v
	v = v.ofSplat(p, i)
	point := v.rotation().apply(mean).add(vec3[T](v.T))
	depth, sees := v.depth(point)
	q := p.quat(i)
	norm := quatNorm(q)
	if !sees || !(norm > 0 && norm < 3.4e38) {
		return s, e, depth, false
	}
	for k := range q {
		q[k] /= norm
	}
	f := newFootprint(v.jacobian(point).mul(v.rotation()), q, p.scales(i))
	if !(f.det > 0 && f.det < 3.4e38) {
		return s, e, depth, false
	}
	s.Conic = f.conic()
	s.Mean2D = v.projectPoint(point)
	s.Opacity = Sigmoid(p.LogitOpacities[i])
	if v.Antialiased {
		s.Opacity *= f.compensation()
	}
	if !(s.Opacity >= AlphaThreshold) {
		return s, e, depth, false
	}
	t := 2*log(255*s.Opacity) + ExtentSlack
	e = [3]T{sqrt(t * f.cov[0]), sqrt(t * f.cov[2]), sqrt(t * f.det / f.cov[2])}
	g := v.Grid()
	y0, y1 := tileRows(s.Mean2D, e, g.Rows)
	x0, x1 := tileInterval(s.Mean2D[0]-e[0], s.Mean2D[0]+e[0], g.Cols)
	if y1 <= y0 || x1 <= x0 {
		return s, e, depth, false
	}
	dir := mean.sub(middle.center())
	dir = dir.scale(1 / sqrt(dir.dot(dir)))
	for ch, c := range shColor(p, i, dir, v.SHDegree) {
		s.Color[ch] = max(c, 0)
		if !(s.Color[ch] < 3.4e38) {
			return s, e, depth, false
		}
	}
	return s, e, depth, true
}
