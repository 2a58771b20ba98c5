package ref

// shBasis evaluates the real spherical harmonics of 3DGS files (Kerbl et al. 2023) for the unit direction d; entries
// from (degree+1)^2 on are 0.
func shBasis[T Real](d vec3[T], degree int) (b [16]T) {
	x, y, z := d[0], d[1], d[2]
	b[0] = 0.28209479177387814
	if degree < 1 {
		return b
	}
	b[1], b[2], b[3] = -0.4886025119029199*y, 0.4886025119029199*z, -0.4886025119029199*x
	if degree < 2 {
		return b
	}
	xx, yy, zz := x*x, y*y, z*z
	b[4] = 1.0925484305920792 * x * y
	b[5] = -1.0925484305920792 * y * z
	b[6] = 0.31539156525252005 * (2*zz - xx - yy)
	b[7] = -1.0925484305920792 * x * z
	b[8] = 0.5462742152960396 * (xx - yy)
	if degree < 3 {
		return b
	}
	b[9] = -0.5900435899266435 * y * (3*xx - yy)
	b[10] = 2.890611442640554 * x * y * z
	b[11] = -0.4570457994644658 * y * (4*zz - xx - yy)
	b[12] = 0.3731763325901154 * z * (2*zz - 3*xx - 3*yy)
	b[13] = -0.4570457994644658 * x * (4*zz - xx - yy)
	b[14] = 1.445305721320277 * z * (xx - yy)
	b[15] = -0.5900435899266435 * x * (xx - 3*yy)
	return b
}

// shBasisGrad is the gradient of each basis polynomial by d, d taken as free; the caller removes the radial part.
func shBasisGrad[T Real](d vec3[T], degree int) (g [16]vec3[T]) {
	x, y, z := d[0], d[1], d[2]
	if degree < 1 {
		return g
	}
	const c1, c2, c6, c8 = 0.4886025119029199, 1.0925484305920792, 0.31539156525252005, 0.5462742152960396
	g[1], g[2], g[3] = vec3[T]{0, -c1, 0}, vec3[T]{0, 0, c1}, vec3[T]{-c1, 0, 0}
	if degree < 2 {
		return g
	}
	g[4] = vec3[T]{y, x, 0}.scale(c2)
	g[5] = vec3[T]{0, z, y}.scale(-c2)
	g[6] = vec3[T]{-2 * x, -2 * y, 4 * z}.scale(c6)
	g[7] = vec3[T]{z, 0, x}.scale(-c2)
	g[8] = vec3[T]{2 * x, -2 * y, 0}.scale(c8)
	if degree < 3 {
		return g
	}
	xx, yy, zz := x*x, y*y, z*z
	const c9, c10, c11, c12, c14 = -0.5900435899266435, 2.890611442640554, -0.4570457994644658, 0.3731763325901154,
		1.445305721320277
	g[9] = vec3[T]{6 * x * y, 3*xx - 3*yy, 0}.scale(c9)
	g[10] = vec3[T]{y * z, x * z, x * y}.scale(c10)
	g[11] = vec3[T]{-2 * x * y, 4*zz - xx - 3*yy, 8 * y * z}.scale(c11)
	g[12] = vec3[T]{-6 * x * z, -6 * y * z, 6*zz - 3*xx - 3*yy}.scale(c12)
	g[13] = vec3[T]{4*zz - 3*xx - yy, -2 * x * y, 8 * x * z}.scale(c11)
	g[14] = vec3[T]{2 * x * z, -2 * y * z, xx - yy}.scale(c14)
	g[15] = vec3[T]{3*xx - 3*yy, -6 * x * y, 0}.scale(c9)
	return g
}

// shColor is the colour of splat i seen along the unit direction dir, before the clamp at 0: SH + 0.5.
func shColor[T Real](p *Params[T], i int, dir vec3[T], degree int) vec3[T] {
	basis := shBasis(dir, degree)
	c := vec3[T]{0.5, 0.5, 0.5}
	sh := p.SH[3*p.Coefficients()*i:]
	for k := range (degree + 1) * (degree + 1) {
		for ch := range c {
			c[ch] += basis[k] * sh[3*k+ch]
		}
	}
	return c
}
