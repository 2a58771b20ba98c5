package ref

// twin: rasterize_bwd

// ProjectedGrad is the gradient of one splat's projection, of one tile or of all: v_mean2d x, y; v_conic xx, xy, yy;
// v_opacity; v_color r, g, b. v_conic xy counts the off-diagonal element once: sigma = (xx dx^2 + yy dy^2) / 2 + xy dx
// dy.
type ProjectedGrad[T Real] [9]T

func (a *ProjectedGrad[T]) add(b *ProjectedGrad[T]) {
	for k := range a {
		a[k] += b[k]
	}
}

// RasterizeBwd returns each pair's gradient, by slot, summed over the tile's pixels in row-major order. vRender is
// dL/d(r, g, b, alpha) per pixel, alpha being 1 - final transmittance. [n_isects]
func RasterizeBwd[T Real](splats []Projected[T], l *Lists, v *View[T], g Grid, vRender [][4]T) []ProjectedGrad[T] {
	vSlots, _ := RasterizeBwdAbs(splats, l, v, g, vRender)
	return vSlots
}

// RasterizeBwdAbs also returns each pair's absolute gradients of the mean, each component summed over the tile's pixels
// (Ye et al. 2024). [n_isects]
func RasterizeBwdAbs[T Real](splats []Projected[T], l *Lists, v *View[T], g Grid, vRender [][4]T) ([]ProjectedGrad[T],
	[][2]T) {
	vSlots, vAbs := make([]ProjectedGrad[T], len(l.SplatFromSlot)), make([][2]T, len(l.SplatFromSlot))
	var list []blended[T]
	eachPixel(v, l, g, func(tile []uint32, at int, c [2]T) {
		list, _, _ = blendPixel(list[:0], splats, l, tile, c)
		up := vRender[at]
		// What lies behind, per unit of light that reaches it: at first the background, of alpha 0.
		behind := [4]T{v.Background[0], v.Background[1], v.Background[2], 0}
		for k := len(list) - 1; k >= 0; k-- {
			b := &list[k]
			slot := tile[b.index]
			s := &splats[l.SplatFromSlot[slot]]
			own := [4]T{s.Color[0], s.Color[1], s.Color[2], 1}
			grad := &vSlots[slot]
			var vAlpha T
			for ch := range own {
				vAlpha += b.transmittance * (own[ch] - behind[ch]) * up[ch]
				behind[ch] = own[ch]*b.alpha + (1-b.alpha)*behind[ch]
			}
			for ch := range s.Color {
				grad[6+ch] += b.alpha * b.transmittance * up[ch]
			}
			if b.raw <= MaxAlpha {
				x, y := addAlphaGrad(grad, s, b, vAlpha)
				vAbs[slot][0] += max(x, -x)
				vAbs[slot][1] += max(y, -y)
			}
		}
	})
	return vSlots, vAbs
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
