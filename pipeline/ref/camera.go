package ref

type View[T Real] struct {
	R             [9]T // world to camera rotation, row-major; OpenCV axes: x right, y down, z forward
	T             [3]T // x_camera = R x_world + T
	Fx, Fy        T    // focal lengths, px
	Cx, Cy        T    // principal point, px; the centre of the first pixel is (0.5, 0.5)
	Width, Height int  // px
	Near          T    // splats at camera z <= Near are culled
	Fisheye       bool // equidistant fisheye instead of pinhole
	Antialiased   bool // opacity compensated for the low-pass filter (Yu et al. 2024)
	Background    [3]T
	SHDegree      int        // degree evaluated, at most the model's
	Lens          *Lens[T]   // nil: straight lines are straight
	Motion        *Motion[T] // nil: the camera stands still; only with a lens
	limits        *Lens[T]   // whose limits slopes has, in its plane; nil: the image's
	sheared       *shear[T]  // of a splat whose row was found; nil: it is not
	held          []*View[T] // tests: the views that splats are projected to, whatever their rows are; nil: not held
}

// ConvertView copies a view into another arithmetic.
func ConvertView[To, From Real](v *View[From]) *View[To] {
	c := &View[To]{
		Fx: To(v.Fx), Fy: To(v.Fy), Cx: To(v.Cx), Cy: To(v.Cy), Width: v.Width, Height: v.Height, Near: To(v.Near),
		Fisheye: v.Fisheye, Antialiased: v.Antialiased, SHDegree: v.SHDegree,
		Lens: ConvertLens[To](v.Lens),
	}
	if m := v.Motion; m != nil {
		c.Motion = &Motion[To]{[3]To(ConvertSlice[To](m.Turn[:])), [3]To(ConvertSlice[To](m.Move[:]))}
	}
	copy(c.R[:], ConvertSlice[To](v.R[:]))
	copy(c.T[:], ConvertSlice[To](v.T[:]))
	copy(c.Background[:], ConvertSlice[To](v.Background[:]))
	return c
}

// Shrunk returns the view of 2^-level of its width and height, rounded down.
func (v *View[T]) Shrunk(level int) *View[T] {
	c, side := *v, T(int(1)<<level)
	c.Width, c.Height = v.Width>>level, v.Height>>level
	c.Fx, c.Fy, c.Cx, c.Cy = v.Fx/side, v.Fy/side, v.Cx/side, v.Cy/side
	return &c
}

func (v *View[T]) rotation() mat3[T] {
	return mat3[T]{[3]T(v.R[0:3]), [3]T(v.R[3:6]), [3]T(v.R[6:9])}
}

// center is the camera's position in the world, -R^T T.
func (v *View[T]) center() vec3[T] {
	return v.rotation().transposed().apply(vec3[T](v.T)).scale(-1)
}

// fisheyeTerms are the factors of the equidistant projection f (theta/r) (x, y) + c, with r^2 = x^2 + y^2, and of its
// derivatives.
type fisheyeTerms[T Real] struct {
	g T // theta / r
	k T // dg/dz = -1 / (r^2 + z^2)
	h T // 2 dg/d(r^2), so that dg/dx = x h
	l T // 2 dh/d(r^2), so that dh/dx = x l
}

func newFisheyeTerms[T Real](p vec3[T]) fisheyeTerms[T] {
	s, z := p[0]*p[0]+p[1]*p[1], p[2]
	f := fisheyeTerms[T]{k: -1 / (s + z*z)}
	u := s / (z * z)
	if u >= 0.04 || z < 0 {
		r := sqrt(s)
		f.g = atan2(r, z) / r
		f.h = (-z*f.k - f.g) / s
		f.l = (-2*z*f.k*f.k - 3*f.h) / s
		return f
	}
	// The closed forms are 0/0 on the axis. theta/r = sum_n (-u)^n / (2n+1) / z, differentiated term by term; 0.04^12
	// is below float64's needs.
	var g, h, l T
	for n := 12; n >= 0; n-- {
		c := 1 / T(2*n+1)
		if n%2 == 1 {
			c = -c
		}
		g = g*u + c
		if n >= 1 {
			h = h*u + 2*T(n)*c
		}
		if n >= 2 {
			l = l*u + 4*T(n*(n-1))*c
		}
	}
	iz := 1 / z
	iz3 := iz * iz * iz
	f.g, f.h, f.l = g*iz, h*iz3, l*iz3*iz*iz
	return f
}

// slopes returns x/z and y/z as the pinhole Jacobian uses them: limited to the image plus a margin relative to the
// principal point. free tells which of the two still follow the point.
func (v *View[T]) slopes(p vec3[T]) (t [2]T, free [2]bool) {
	focal, centre, size := [2]T{v.Fx, v.Fy}, [2]T{v.Cx, v.Cy}, [2]T{T(v.Width), T(v.Height)}
	for i := range t {
		margin := JacobianMargin * 0.5 * size[i] / focal[i]
		lo, hi := -(centre[i]/focal[i] + margin), (size[i]-centre[i])/focal[i]+margin
		if v.limits != nil {
			lo, hi = v.limits.Lo[i]-v.limits.Margin[i], v.limits.Hi[i]+v.limits.Margin[i]
		}
		raw := p[i] / p[2]
		t[i] = min(max(raw, lo), hi)
		free[i] = t[i] == raw
	}
	return t, free
}

// projectPoint maps a camera point to the image, px.
func (v *View[T]) projectPoint(p vec3[T]) [2]T {
	if v.Lens != nil {
		return v.lensPoint(p)
	}
	if v.Fisheye {
		g := newFisheyeTerms(p).g
		return [2]T{v.Fx*g*p[0] + v.Cx, v.Fy*g*p[1] + v.Cy}
	}
	return [2]T{v.Fx*p[0]/p[2] + v.Cx, v.Fy*p[1]/p[2] + v.Cy}
}

// jacobian is d(image)/d(camera point), the first-order footprint of EWA splatting (Zwicker et al. 2001).
func (v *View[T]) jacobian(p vec3[T]) mat23[T] {
	if v.Lens != nil {
		return v.lensJacobian(p)
	}
	if v.Fisheye {
		f := newFisheyeTerms(p)
		x, y := p[0], p[1]
		return mat23[T]{
			{v.Fx * (f.g + x*x*f.h), v.Fx * x * y * f.h, v.Fx * x * f.k},
			{v.Fy * x * y * f.h, v.Fy * (f.g + y*y*f.h), v.Fy * y * f.k},
		}
	}
	t, _ := v.slopes(p)
	rz := 1 / p[2]
	return mat23[T]{{v.Fx * rz, 0, -v.Fx * t[0] * rz}, {0, v.Fy * rz, -v.Fy * t[1] * rz}}
}

// pointVJP is the gradient of the camera point through its image, given vMean = dL/d(image), and through the Jacobian,
// given vJ = dL/dJ.
func (v *View[T]) pointVJP(p vec3[T], vMean [2]T, vJ mat23[T]) (g vec3[T]) {
	if v.Lens != nil {
		return v.lensVJP(p, vMean, vJ)
	}
	if v.Fisheye {
		return v.fisheyeVJP(p, vMean, vJ)
	}
	focal := [2]T{v.Fx, v.Fy}
	t, free := v.slopes(p)
	rz := 1 / p[2]
	for i := range focal {
		f := focal[i]
		g[i] += f * rz * vMean[i]
		g[2] -= f * p[i] * rz * rz * vMean[i]
		g[2] -= f * rz * rz * vJ[i][i]
		// J_i2 = -f t / z.
		g[2] += f * t[i] * rz * rz * vJ[i][2]
		if free[i] {
			vt := -f * rz * vJ[i][2]
			g[i] += vt * rz
			g[2] -= vt * t[i] * rz
		}
	}
	return g
}

func (v *View[T]) fisheyeVJP(p vec3[T], vMean [2]T, vJ mat23[T]) vec3[T] {
	f := newFisheyeTerms(p)
	x, y, z := p[0], p[1], p[2]
	// The point's own Jacobian.
	var g vec3[T]
	for j, row := range v.jacobian(p) {
		g = g.add(vec3[T](row).scale(vMean[j]))
	}
	// Gradients of the terms g, h, k by the point.
	kk := 2 * f.k * f.k
	dg := vec3[T]{x * f.h, y * f.h, f.k}
	dh := vec3[T]{x * f.l, y * f.l, kk}
	dk := vec3[T]{x * kk, y * kk, z * kk}
	a00, a01, a02 := v.Fx*vJ[0][0], v.Fx*vJ[0][1]+v.Fy*vJ[1][0], v.Fx*vJ[0][2]
	a11, a12 := v.Fy*vJ[1][1], v.Fy*vJ[1][2]
	g = g.add(dg.scale(a00 + a11))
	g = g.add(dh.scale(a00*x*x + a01*x*y + a11*y*y))
	g = g.add(dk.scale(a02*x + a12*y))
	g[0] += 2*x*f.h*a00 + y*f.h*a01 + f.k*a02
	g[1] += 2*y*f.h*a11 + x*f.h*a01 + f.k*a12
	return g
}
