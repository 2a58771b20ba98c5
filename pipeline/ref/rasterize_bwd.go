package ref

// twin: rasterize_bwd

// ProjectedGrad is the gradient of one splat's projection, of one tile or of all: v_mean2d x, y; v_conic xx, xy, yy;
// v_opacity; v_color r, g, b. v_conic xy counts the off-diagonal element once: sigma = (xx dx^2 + yy dy^2) / 2 + xy dx
// dy.
type ProjectedGrad[T Real] [9]T

// RasterizeBwdAbs also returns each pair's absolute gradients of the mean, each component summed over the tile's pixels
// (Ye et al. 2024). [n_isects]
func RasterizeBwdAbs[T Real](splats []Projected[T], l *Lists, v *View[T], g Grid, vRender [][4]T) ([]ProjectedGrad[T],
	[][2]T) {
	vSlots, vBeside := RasterizeBwdDepth(splats, make([]T, len(splats)), l, v, g, vRender, make([]T, len(vRender)))
	vAbs := make([][2]T, len(vBeside))
	for i, x := range vBeside {
		vAbs[i] = [2]T(x[:2])
	}
	return vSlots, vAbs
}

// RasterizeBwdDepth does the same where vSums is the gradient of the loss by each pixel's sum of weight times inverse,
// the inverse of each splat's depth. Beside the absolute gradients comes each pair's by inverse. [n_isects]
func RasterizeBwdDepth[T Real](splats []Projected[T], inverse []T, l *Lists, v *View[T], g Grid, vRender [][4]T,
	vSums []T) ([]ProjectedGrad[T], [][3]T) {
	vSlots, vBeside := make([]ProjectedGrad[T], len(l.SplatFromSlot)), make([][3]T, len(l.SplatFromSlot))
	var list []blended[T]
	eachPixel(v, l, g, func(tile []uint32, at int, c [2]T) {
		list, _, _ = blendPixel(list[:0], splats, l, tile, c)
		up := [5]T{vRender[at][0], vRender[at][1], vRender[at][2], vRender[at][3], vSums[at]}
		// What lies behind, per unit of light that reaches it: at first the background, of alpha 0.
		behind := [5]T{v.Background[0], v.Background[1], v.Background[2]}
		for k := len(list) - 1; k >= 0; k-- {
			b := &list[k]
			slot := tile[b.index]
			id := l.SplatFromSlot[slot]
			s := &splats[id]
			own := [5]T{s.Color[0], s.Color[1], s.Color[2], 1, inverse[id]}
			grad := &vSlots[slot]
			var vAlpha T
			for ch := range own {
				vAlpha += b.transmittance * (own[ch] - behind[ch]) * up[ch]
				behind[ch] = own[ch]*b.alpha + (1-b.alpha)*behind[ch]
			}
			for ch := range s.Color {
				grad[6+ch] += b.alpha * b.transmittance * up[ch]
			}
			vBeside[slot][2] += b.alpha * b.transmittance * up[4]
			if b.raw <= MaxAlpha {
				x, y := addAlphaGrad(grad, s, b, vAlpha)
				vBeside[slot][0] += max(x, -x)
				vBeside[slot][1] += max(y, -y)
			}
		}
	})
	return vSlots, vBeside
}

// addAlphaGrad carries dL/dalpha on to opacity, conic and mean2d, and returns what it added to the latter.
func addAlphaGrad[T Real](grad *ProjectedGrad[T], s *Projected[T], b *blended[T], vAlpha T) (x, y T) {
	vSigma := -b.raw * vAlpha
	dx, dy := b.d[0], b.d[1]
	x, y = vSigma*(s.Conic[0]*dx+s.Conic[1]*dy), vSigma*(s.Conic[1]*dx+s.Conic[2]*dy)
	grad[0] += x
	grad[1] += y
	grad[2] += vSigma * 0.5 * dx * dx
	grad[3] += vSigma * dx * dy
	grad[4] += vSigma * 0.5 * dy * dy
	grad[5] += b.falloff * vAlpha
	return x, y
}
