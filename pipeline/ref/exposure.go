package ref

// twin: expose expose_bwd exposure_adam

// Affine is a photo's colour map, row-major [3][4]: c' = A[:, :3] c + A[:, 3].
type Affine[T Real] [12]T

// IdentityAffine leaves colours as they are.
func IdentityAffine[T Real]() Affine[T] { return Affine[T]{0: 1, 5: 1, 10: 1} }

// Expose maps the colours of a rendering [P]; transmittance stays.
func Expose[T Real](render [][4]T, a *Affine[T]) [][4]T {
	out := make([][4]T, len(render))
	for p, c := range render {
		for i := range 3 {
			out[p][i] = a[4*i]*c[0] + a[4*i+1]*c[1] + a[4*i+2]*c[2] + a[4*i+3]
		}
		out[p][3] = c[3]
	}
	return out
}

// ExposeBwd takes dL/d(mapped colours, alpha) to dL/d(rendered colours, alpha) and to dL/dA.
func ExposeBwd[T Real](render, vExposed [][4]T, a *Affine[T]) (vRender [][4]T, vAffine Affine[T]) {
	vRender = make([][4]T, len(render))
	for p, g := range vExposed {
		for i := range 3 {
			for j := range 3 {
				vRender[p][j] += g[i] * a[4*i+j]
				vAffine[4*i+j] += g[i] * render[p][j]
			}
			vAffine[4*i+3] += g[i]
		}
		vRender[p][3] = g[3]
	}
	return vRender, vAffine
}

// ExposurePull is reg times the mean squared distance of the map from the identity, and its gradient.
func ExposurePull[T Real](a *Affine[T], reg T) (value T, grad Affine[T]) {
	one := IdentityAffine[T]()
	for i := range a {
		d := a[i] - one[i]
		value += reg * d * d / T(len(a))
		grad[i] = 2 * reg * d / T(len(a))
	}
	return value, grad
}

// ExposureAdam steps a photo's map with the gradient of the loss and the pull towards the identity; step counts from 1
// how often the photo was trained on.
func ExposureAdam[T Real](a, m, v, vAffine *Affine[T], lr float64, reg T, c AdamConfig, step int) {
	_, g := ExposurePull(a, reg)
	for i := range g {
		g[i] += vAffine[i]
	}
	Adam(a[:], m[:], v[:], g[:], lr, c, step)
}
