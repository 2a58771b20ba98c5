package ref

import (
	"math"

	"vksplat/shaders/layout"
)

// twin: refine_pose pose_grad pose_adam

// PoseNumbers is what is learnt of a camera: a turn about its centre [0..2], a shift of the centre [3..5], both along
// the axes of the given camera, and the numbers of the lens [6..12]; see shared/pose.glsl.
type PoseNumbers[T Real] [layout.PoseNumbers]T

// LensNumbers are the logarithm of a factor of the focal lengths, how far the principal point moves in given focal
// lengths, and what k1, k2, p1 and p2, or a fisheye's k1 to k4, move at the corner of the photo, in focal lengths.
type LensNumbers[T Real] [layout.LensNumbers]T

func (a *PoseNumbers[T]) optics() LensNumbers[T] { return LensNumbers[T](a[layout.PoseLens:]) }

func (a *PoseNumbers[T]) turn() vec3[T]  { return vec3[T](a[0:3]) }
func (a *PoseNumbers[T]) shift() vec3[T] { return vec3[T](a[3:6]) }

type GivenPose[T Real] struct {
	R      [9]T // world to camera, row-major
	Center [3]T // from the mean over all photos
	Camera int  // photos of one camera share their lens
}

// common returns by how much photo id turns, shifts and grows where all cameras turn by 1 about an axis, move along it,
// or move apart, which is number k of seven, along the axes of the given camera.
func (g *GivenPose[T]) common(k int) (turn, shift vec3[T]) {
	r := mat3[T]{[3]T(g.R[0:3]), [3]T(g.R[3:6]), [3]T(g.R[6:9])}
	var axis vec3[T]
	if k < 6 {
		axis[k%3] = 1
	}
	switch {
	case k < 3:
		return r.apply(axis), r.apply(axis.cross(g.Center))
	case k < 6:
		return turn, r.apply(axis)
	}
	return turn, r.apply(g.Center)
}

// RefinedPose returns what is used of photo id from what all photos have learnt: its own turn and shift without the
// motion that all cameras share, by least squares, and the sums of the lens's numbers over the photos of its camera.
// Where all cameras are in one place, nothing grows.
func RefinedPose[T Real](own []PoseNumbers[T], given []GivenPose[T], id int) PoseNumbers[T] {
	var a [7][8]T // normal equations, and their right side
	for i := range own {
		for j := range 7 {
			tj, sj := given[i].common(j)
			a[j][7] += tj.dot(own[i].turn()) + sj.dot(own[i].shift())
			for k := range 7 {
				tk, sk := given[i].common(k)
				a[j][k] += tj.dot(tk) + sj.dot(sk)
			}
		}
	}
	out := own[id]
	for j, x := range solve7(a) {
		turn, shift := given[id].common(j)
		for k := range 3 {
			out[k] -= x * turn[k]
			out[3+k] -= x * shift[k]
		}
	}
	for k := layout.PoseLens; k < layout.PoseNumbers; k++ {
		out[k] = 0
		for i := range own {
			if given[i].Camera == given[id].Camera {
				out[k] += own[i][k]
			}
		}
	}
	return out
}

// solve7 solves symmetric equations; unknowns that they leave open are 0.
func solve7[T Real](a [7][8]T) (x [7]T) {
	var open [7]bool
	for k := range 7 {
		if open[k] = !(a[k][k] > 1e-12); open[k] {
			continue
		}
		for i := range 7 {
			if f := a[i][k] / a[k][k]; i != k {
				for j := range 8 {
					a[i][j] -= f * a[k][j]
				}
			}
		}
	}
	for k := range 7 {
		if !open[k] {
			x[k] = a[k][7] / a[k][k]
		}
	}
	return x
}

func crossMatrix[T Real](w vec3[T]) mat3[T] {
	return mat3[T]{{0, -w[2], w[1]}, {w[2], 0, -w[0]}, {-w[1], w[0], 0}}
}

func (m mat3[T]) times(b mat3[T]) (c mat3[T]) {
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				c[i][j] += m[i][k] * b[k][j]
			}
		}
	}
	return c
}

// turned is exp([w]) as its power series, and the series of what turns from the left where w changes.
func turned[T Real](w vec3[T]) (r, left mat3[T]) {
	k := crossMatrix(w)
	power := mat3[T]{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	for n := range 24 {
		f := T(1)
		for i := 2; i <= n; i++ {
			f /= T(i)
		}
		for i := range 3 {
			for j := range 3 {
				r[i][j] += f * power[i][j]
				left[i][j] += f / T(n+1) * power[i][j]
			}
		}
		power = power.times(k)
	}
	return r, left
}

// Refined returns the view after what was learnt of its camera.
func (v *View[T]) Refined(a *PoseNumbers[T]) *View[T] {
	c := *v
	e, _ := turned(a.turn().scale(-1))
	r := e.times(v.rotation())
	for i := range 3 {
		copy(c.R[3*i:], r[i][:])
	}
	c.T = e.apply(vec3[T](v.T).sub(a.shift()))
	n := a.optics()
	c.Fx, c.Fy = v.Fx*exp(n[0]), v.Fy*exp(n[0])
	c.Cx, c.Cy = v.Cx+v.Fx*n[1], v.Cy+v.Fy*n[2]
	if v.Lens != nil && !v.Lens.After {
		l := *v.Lens
		c.Lens = &l
		for k, x := range l.learnt(v.Fisheye) {
			*x += n[3+k] / l.unit(k, v.Fisheye)
		}
	}
	return &c
}

// learnt are the four coefficients that are learnt of a lens.
func (l *Lens[T]) learnt(fisheye bool) [4]*T {
	if fisheye {
		return [4]*T{&l.Num[0], &l.Num[1], &l.Num[2], &l.Num[3]}
	}
	return [4]*T{&l.Num[0], &l.Num[1], &l.P1, &l.P2}
}

// unit is how far coefficient k of them moves the corner of the photo, in focal lengths, per unit.
func (l *Lens[T]) unit(k int, fisheye bool) T {
	square := T(0)
	for i := range l.Lo {
		square += max(l.Lo[i]*l.Lo[i], l.Hi[i]*l.Hi[i])
	}
	if !fisheye && k >= 2 {
		return square
	}
	unit := sqrt(square) * square
	for range k {
		unit *= square
	}
	return unit
}

// PoseGrad is the gradient by the motion of a view with a lens, where every point p of its frame becomes p + w x p + v:
// w [0..2], v [3..5], by the logarithm of its focal lengths, by its principal point in pixels, and by the coefficients
// of its distortion that are learnt.
func PoseGrad[T Real](p *Params[T], v *View[T], proj *Projection[T], vProjected []ProjectedGrad[T]) (g PoseNumbers[T]) {
	for i := range p.N {
		if !proj.Visible(i) {
			continue
		}
		for k, x := range splatPoseGrad(p, v, i, &vProjected[i]) {
			g[k] += x
		}
	}
	return g
}

// splatPoseGrad is a splat's part. The covariance in the camera's frame becomes S + [w] S - S [w] in first order, so
// that with G = dL/dS its part in the gradient by w is -2 m, [m] = S G - G S.
func splatPoseGrad[T Real](p *Params[T], v *View[T], i int, up *ProjectedGrad[T]) (g PoseNumbers[T]) {
	w := v.rotation()
	point := w.apply(p.mean(i)).add(vec3[T](v.T))
	q := p.quat(i)
	norm := quatNorm(q)
	for k := range q {
		q[k] /= norm
	}
	j := v.jacobian(point)
	f := newFootprint(j.mul(w), q, p.scales(i))
	vCov := conicVJP(f.conic(), sym2[T]{up[2], up[3] / 2, up[4]})
	if v.Antialiased {
		vCov = compensationVJP(vCov, &f, f.compensation(), up[5]*Sigmoid(p.LogitOpacities[i]))
	}
	var cov mat3[T] // in the camera's frame
	axes := w.times(f.rotation)
	for r := range 3 {
		for c := range 3 {
			for k, s := range f.scales {
				cov[r][c] += s * s * axes[r][k] * axes[c][k]
			}
		}
	}
	// The image's covariance is J S J^T: dL/dJ = 2 V J S, dL/dS = J^T V J.
	var vj mat23[T]
	for c := range 3 {
		vj[0][c], vj[1][c] = vCov.apply(j[0][c], j[1][c])
	}
	vJ := vj.mul(cov)
	var inner mat3[T]
	for r := range 3 {
		vJ[0][r], vJ[1][r] = 2*vJ[0][r], 2*vJ[1][r]
		for c := range 3 {
			inner[r][c] = j[0][r]*vj[0][c] + j[1][r]*vj[1][c]
		}
	}
	sg, gs := cov.times(inner), inner.times(cov)
	vPoint := v.pointVJP(point, [2]T{up[0], up[1]}, vJ)
	vTurn := point.cross(vPoint)
	vTurn = vTurn.sub(vec3[T]{sg[2][1] - gs[2][1], sg[0][2] - gs[0][2], sg[1][0] - gs[1][0]}.scale(2))
	// The centre moves by -R^T v where the points move by v, and splats' colours with it.
	unused := NewParams[T](p.N, p.Degree)
	vShift := vPoint.add(w.apply(colorVJP(unused, p, v, i, vec3[T]{up[6], up[7], up[8]})))
	copy(g[0:], vTurn[:])
	copy(g[3:], vShift[:])
	optics := v.lensGrad(point, [2]T{up[0], up[1]}, vJ)
	copy(g[layout.PoseLens:], optics[:])
	return g
}

// lensGrad is the gradient by what is learnt of the lens, as in PoseGrad.
func (v *View[T]) lensGrad(point vec3[T], vMean [2]T, vJ mat23[T]) (g LensNumbers[T]) {
	at, j := v.projectPoint(point), v.jacobian(point)
	for i, c := range [2]T{v.Cx, v.Cy} {
		g[0] += vMean[i]*(at[i]-c) + vJ.row(i).dot(j.row(i))
		g[1+i] = vMean[i]
	}
	plane := v.plane()
	u, onPlane, back := plane.projectPoint(point), plane.jacobian(point), v.focal().transposed()
	c, vAt, vSlope := v.Lens.shown(u), back.apply(vMean), back.mul23(vJ)
	for k := range v.Lens.learnt(v.Fisheye) {
		a, slope := v.Lens.by(k, c, v.Fisheye)
		for r := range a {
			g[3+k] += vAt[r] * a[r]
			for s := range a {
				g[3+k] += slope[r][s] * (vSlope.row(r).dot(onPlane.row(s)) + vAt[r]*(u[s]-c[s]))
			}
		}
	}
	return g
}

// by returns how distort's place and Jacobian change with coefficient k of those that are learnt.
func (l *Lens[T]) by(k int, u [2]T, fisheye bool) (a [2]T, slope mat2[T]) {
	if !fisheye && k >= 2 {
		return (&Lens[T]{P1: T(3 - k), P2: T(k - 2)}).shift(u)
	}
	s := u[0]*u[0] + u[1]*u[1]
	d, d1, _ := series(l.Den[:], s)
	power := T(1)
	for range k {
		power *= s
	}
	h, h1 := power*s/d, (T(k+1)*power*d-power*s*d1)/(d*d)
	for i := range a {
		a[i] = h * u[i]
		slope[i][i] += h
		for j := range a {
			slope[i][j] += 2 * h1 * u[i] * u[j]
		}
	}
	return a, slope
}

// PoseChain takes that gradient to what was learnt: p' = exp(-[turn]) (p - shift), and the lens in its units.
func PoseChain[T Real](given *View[T], a *PoseNumbers[T], g PoseNumbers[T]) (out PoseNumbers[T]) {
	r, left := turned(a.turn())
	turn, shift := left.apply(vec3[T](g[0:3])).scale(-1), r.apply(vec3[T](g[3:6])).scale(-1)
	copy(out[0:], turn[:])
	copy(out[3:], shift[:])
	n := out[layout.PoseLens:]
	copy(n, g[layout.PoseLens:])
	n[1], n[2] = n[1]*given.Fx, n[2]*given.Fy
	for k := range n[3:] {
		n[3+k] /= given.Lens.unit(k, given.Fisheye)
	}
	return out
}

// AnchorPoint is a point of the reconstruction and where the photo shows it, px.
type AnchorPoint[T Real] struct {
	Point [3]T
	Seen  [2]T
}

// PoseHold is what holds a camera, and its gradient: weight times the mean of Huber's function of the distance, in
// pixels, between where given, as a has it, shows points and where the photo does; without points, of the distance of
// turn and shift from nothing at the median camera's distance, of the focal lengths at the side of the picture, and of
// each of the lens's other numbers.
func PoseHold[T Real](given *View[T], a *PoseNumbers[T], points []AnchorPoint[T], weight T) (loss T,
	g PoseNumbers[T]) {
	v := given.Refined(a)
	huber := func(r T) (value, slope T) { // slope over r
		if r < 1 {
			return r * r / 2, 1
		}
		return r - 0.5, 1 / r
	}
	if len(points) == 0 {
		focal, side := sqrt(given.Fx*given.Fy), T(given.Width)/2
		turn, shift := a.turn(), a.shift()
		value, slope := huber(focal * sqrt(turn.dot(turn)+shift.dot(shift)))
		for k := range 6 {
			g[k] = weight * focal * focal * slope * a[k]
		}
		for k, x := range a.optics() {
			unit := focal
			if k == 0 {
				unit = side
			}
			more, slope := huber(unit * abs(x))
			value += more
			g[layout.PoseLens+k] = weight * unit * unit * slope * x
		}
		return weight * value, g
	}
	weight /= T(len(points))
	var up PoseNumbers[T]
	for _, x := range points {
		point := v.rotation().apply(vec3[T](x.Point)).add(vec3[T](v.T))
		if !(point[2] > v.Near) {
			continue
		}
		at := v.projectPoint(point)
		off := [2]T{at[0] - x.Seen[0], at[1] - x.Seen[1]}
		value, slope := huber(sqrt(off[0]*off[0] + off[1]*off[1]))
		loss += weight * value
		vAt := [2]T{weight * slope * off[0], weight * slope * off[1]}
		vPoint := v.pointVJP(point, vAt, mat23[T]{})
		vTurn := point.cross(vPoint)
		for k := range 3 {
			up[k] += vTurn[k]
			up[3+k] += vPoint[k]
		}
		for k, x := range v.lensGrad(point, vAt, mat23[T]{}) {
			up[layout.PoseLens+k] += x
		}
	}
	return loss, PoseChain(given, a, up)
}

// PoseRates say how far a photo's pose is stepped, and with which Adam.
type PoseRates struct {
	Pose, Lens   float64 // of this step
	Beta1, Beta2 float64
}

// OtherPhotos are sums over the other photos of a camera: the second moments of the lens's numbers, and their bias.
type OtherPhotos struct {
	Seconds LensNumbers[float64]
	Bias    float64
}

// PoseAdam steps what a photo has learnt, with moments m and v, by the gradient g; it was trained on step-1 times
// before. Distortion is learnt where learnt says so.
func PoseAdam(own, m, v, g *PoseNumbers[float64], r PoseRates, step int, others OtherPhotos, learnt bool) {
	bias1, bias2 := 1-math.Pow(r.Beta1, float64(step)), 1-math.Pow(r.Beta2, float64(step))
	for k := range own {
		if k >= layout.PoseLens+3 && !learnt {
			continue
		}
		m[k] = r.Beta1*m[k] + (1-r.Beta1)*g[k]
		v[k] = r.Beta2*v[k] + (1-r.Beta2)*g[k]*g[k]
		rate, second := r.Pose, v[k]/bias2
		if k >= layout.PoseLens {
			rate, second = r.Lens, (others.Seconds[k-layout.PoseLens]+v[k])/(others.Bias+bias2)
		}
		own[k] -= rate * (m[k] / bias1) / (math.Sqrt(second) + DefaultAdam.Eps)
	}
}
