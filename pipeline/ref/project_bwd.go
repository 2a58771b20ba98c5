package ref

// twin: project_bwd project_bwd_adam adam_unseen project_bwd_adam_views

// ProjectBwd carries the gradients of the projections on to the parameters (the v_* variant of the kernel). Culled
// splats get zero.
func ProjectBwd[T Real](p *Params[T], v *View[T], proj *Projection[T], vProjected []ProjectedGrad[T]) *Params[T] {
	g := NewParams[T](p.N, p.Degree)
	for i := range p.N {
		if proj.Visible(i) {
			projectSplatBwd(g, p, v, i, &vProjected[i])
		}
	}
	return g
}

// ProjectBwdViews returns the mean over the views of a batch of what ProjectBwd returns of each.
func ProjectBwdViews[T Real](p *Params[T], views []*View[T], proj []*Projection[T],
	vProjected [][]ProjectedGrad[T]) *Params[T] {
	sum := NewParams[T](p.N, p.Degree)
	to := sum.Tensors()
	for w, v := range views {
		for k, t := range ProjectBwd(p, v, proj[w], vProjected[w]).Tensors() {
			for i, x := range t.Data {
				to[k].Data[i] += x
			}
		}
	}
	for _, t := range to {
		for i := range t.Data {
			t.Data[i] *= 1 / T(len(views))
		}
	}
	return sum
}

func projectSplatBwd[T Real](g, p *Params[T], v *View[T], i int, up *ProjectedGrad[T]) {
	mean := p.mean(i)
	w := v.rotation()
	point := w.apply(mean).add(vec3[T](v.T))
	q := p.quat(i)
	norm := quatNorm(q)
	for k := range q {
		q[k] /= norm
	}
	j := v.jacobian(point)
	f := newFootprint(j.mul(w), q, p.scales(i))
	vCov := conicVJP(f.conic(), sym2[T]{up[2], up[3] / 2, up[4]})

	opacity := Sigmoid(p.LogitOpacities[i])
	vOpacity := up[5]
	if v.Antialiased {
		comp := f.compensation()
		vCov = compensationVJP(vCov, &f, comp, vOpacity*opacity)
		vOpacity *= comp
	}
	g.LogitOpacities[i] = vOpacity * opacity * (1 - opacity)

	vJW := footprintVJP(g, i, &f, q, norm, vCov)
	// J W: the rows of dL/dJ are dL/d(JW) W^T.
	vJ := vJW.mul(w.transposed())
	vPoint := v.pointVJP(point, [2]T{up[0], up[1]}, vJ)
	vMean := w.transposed().apply(vPoint).add(colorVJP(g, p, v, i, vec3[T]{up[6], up[7], up[8]}))
	copy(g.Means[3*i:], vMean[:])
}

// conicVJP is the gradient of the covariance, given that of its inverse, both as symmetric matrices: -C V C.
func conicVJP[T Real](conic, v sym2[T]) sym2[T] {
	// Columns of V C.
	ax, ay := v.apply(conic[0], conic[1])
	bx, by := v.apply(conic[1], conic[2])
	xx, xy := conic.apply(ax, ay)
	_, yy := conic.apply(bx, by)
	return sym2[T]{-xx, -xy, -yy}
}

// compensationVJP adds the gradient of the covariance through comp = sqrt(det before / det after), given vComp. With D1
// = det after, d(comp^2)/dcov = (1 - comp^2) conic - Eps2D/D1 I. Compensated opacities below 1/255 are culled, so comp
// is never near 0.
func compensationVJP[T Real](vCov sym2[T], f *footprint[T], comp, vComp T) sym2[T] {
	conic := f.conic()
	half := vComp * 0.5 / comp
	rest := 1 - comp*comp
	vCov[0] += half * (rest*conic[0] - Eps2D/f.det)
	vCov[1] += half * rest * conic[1]
	vCov[2] += half * (rest*conic[2] - Eps2D/f.det)
	return vCov
}

// footprintVJP writes the gradients of quats and log_scales of splat i and returns that of JW, given vCov. cov = b b^T,
// b = JW R S.
func footprintVJP[T Real](g *Params[T], i int, f *footprint[T], unit [4]T, norm T, vCov sym2[T]) (vJW mat23[T]) {
	var vRotation mat3[T]
	for k, s := range f.scales {
		// Column k of dL/db = 2 vCov b, and of dL/d(JW R) = that times s.
		bx, by := f.b.column(k)
		vx, vy := vCov.scale(2).apply(bx, by)
		// log scale: d b_k / d log s_k = b_k.
		g.LogScales[3*i+k] = vx*bx + vy*by
		vx, vy = vx*s, vy*s
		for r := range 3 {
			vRotation[r][k] = f.jw[0][r]*vx + f.jw[1][r]*vy
			vJW[0][r] += vx * f.rotation[r][k]
			vJW[1][r] += vy * f.rotation[r][k]
		}
	}
	vQuat := normalizeVJP(unit, norm, quatRotationVJP(unit, vRotation))
	copy(g.Quats[4*i:], vQuat[:])
	return vJW
}

// colorVJP writes the gradient of the spherical harmonics of splat i and returns that of the mean through the viewing
// direction. No gradient flows where SH + 0.5 is below 0.
func colorVJP[T Real](g, p *Params[T], v *View[T], i int, vColor vec3[T]) vec3[T] {
	dir := p.mean(i).sub(v.center())
	length := sqrt(dir.dot(dir))
	dir = dir.scale(1 / length)
	for ch, c := range shColor(p, i, dir, v.SHDegree) {
		if c < 0 {
			vColor[ch] = 0
		}
	}
	basis, basisGrad := shBasis(dir, v.SHDegree), shBasisGrad(dir, v.SHDegree)
	at := 3 * p.Coefficients() * i
	var vDir vec3[T]
	for k := range (v.SHDegree + 1) * (v.SHDegree + 1) {
		var along T
		for ch := range 3 {
			g.SH[at+3*k+ch] = basis[k] * vColor[ch]
			along += p.SH[at+3*k+ch] * vColor[ch]
		}
		vDir = vDir.add(basisGrad[k].scale(along))
	}
	// d(unit)/d(mean) = (I - dir dir^T) / length.
	return vDir.sub(dir.scale(dir.dot(vDir))).scale(1 / length)
}
