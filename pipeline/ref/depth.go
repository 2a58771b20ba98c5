package ref

import "math"

// twin: rasterize_depth rasterize_bwd_depth reduce_slots_depth send_grads_depth depth_loss
// twin: project_bwd_adam_depth project_bwd_adam_views_depth

// InverseDepths returns the inverse of the depth of each splat in the view, 0 of those that it does not see. [N]
func InverseDepths[T Real](p *Params[T], v *View[T], proj *Projection[T]) []T {
	inverse, w := make([]T, p.N), v.rotation()
	for i := range inverse {
		if proj.Visible(i) {
			inverse[i] = 1 / w.apply(p.mean(i)).add(vec3[T](v.T))[2]
		}
	}
	return inverse
}

// RasterizeDepth returns the sum of weight times inverse of each pixel of the band's tiles. [P]
func RasterizeDepth[T Real](splats []Projected[T], inverse []T, l *Lists, v *View[T], g Grid) []T {
	sums := make([]T, v.Width*v.Height)
	var list []blended[T]
	eachPixel(v, l, g, func(tile []uint32, at int, c [2]T) {
		list, _, _ = blendPixel(list[:0], splats, l, tile, c)
		for _, b := range list {
			sums[at] += inverse[l.SplatFromSlot[tile[b.index]]] * (b.alpha * b.transmittance)
		}
	})
	return sums
}

// DepthLoss is weight times the mean alpha |sum / alpha - known| over the pixels whose inverse depth is known, which is
// above 0. It returns its gradients by each pixel's sum and alpha, where the alpha in front counts as a constant. n is
// the number of pixels that the mean is of.
func DepthLoss[T Real](render [][4]T, sums, known []T, weight T, n int) (loss T, vSums, vAlphas []T) {
	vSums, vAlphas = make([]T, len(sums)), make([]T, len(sums))
	for i, inverse := range known {
		if inverse == 0 {
			continue
		}
		alpha := 1 - render[i][3]
		off := sums[i] - alpha*inverse
		sign := T(0)
		if off != 0 {
			sign = T(math.Copysign(1, float64(off)))
		}
		loss += weight / T(n) * off * sign
		if vSums[i] = weight / T(n) * sign; alpha > 0 {
			vAlphas[i] = -vSums[i] * (sums[i] / alpha)
		}
	}
	return loss, vSums, vAlphas
}

// AddInverseDepthGrads adds to the gradients of parameters those that means have by the inverse of the depth. [N]
func AddInverseDepthGrads[T Real](g, p *Params[T], v *View[T], proj *Projection[T], vInverse []T) {
	w := v.rotation().transposed()
	for i, inverse := range InverseDepths(p, v, proj) {
		vMean := w.apply(vec3[T]{0, 0, -vInverse[i] * inverse * inverse})
		for k := range vMean {
			g.Means[3*i+k] += vMean[k]
		}
	}
}
