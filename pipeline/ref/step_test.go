package ref

import "slices"

// StepConfig is what one training step needs beside the model and the view.
type StepConfig[T Real] struct {
	Loss  LossConfig[T]
	Rates Rates
	Adam  AdamConfig
	Step  int // 1, 2, ... for Adam's bias correction
	Bands int // bands of tile rows, at least 1; no result depends on it
}

// Gradients is everything that one view's forward and backward pass computes.
type Gradients[T Real] struct {
	Projection *Projection[T]
	Image      *Image[T]
	Loss       *LossResult[T]
	VProjected []ProjectedGrad[T] // [N]
	VParams    *Params[T]
}

// Render runs the forward passes in the given number of bands.
func Render[T Real](p *Params[T], v *View[T], bands int) (*Projection[T], *Image[T]) {
	proj := Project(p, v)
	img := NewImage[T](v.Width, v.Height)
	for k := range bands {
		g := v.Grid().Band(k, bands)
		Rasterize(img, proj.Splats, NewLists(proj, g), v, g)
	}
	return proj, img
}

// Backward carries vRender, dL/d(r, g, b, alpha) per pixel, back to projections and parameters.
func Backward[T Real](p *Params[T], v *View[T], proj *Projection[T], vRender [][4]T, bands int) ([]ProjectedGrad[T],
	*Params[T]) {
	vProjected := make([]ProjectedGrad[T], p.N)
	whole := NewLists(proj, v.Grid())
	for k := range bands {
		g := v.Grid().Band(k, bands)
		l := NewLists(proj, g)
		ReduceSlots(vProjected, RasterizeBwd(proj.Splats, l, v, g, vRender), l, g.Cols, whole.tiles)
	}
	return vProjected, ProjectBwd(p, v, proj, vProjected)
}

// LossGradients renders the view, compares it with the photo [P*3] and returns the gradients of all parameters.
func LossGradients[T Real](p *Params[T], v *View[T], target []T, c LossConfig[T], bands int) *Gradients[T] {
	g := &Gradients[T]{}
	g.Projection, g.Image = Render(p, v, bands)
	g.Loss = Loss(g.Image.Render, target, v.Width, v.Height, c)
	g.VProjected, g.VParams = Backward(p, v, g.Projection, g.Loss.VRender, bands)
	return g
}

// Step trains the model on one view: project, sort, rasterize, loss, their gradients, Adam, statistics.
func Step[T Real](model *Model[T], v *View[T], target []T, c StepConfig[T]) *Gradients[T] {
	g := LossGradients(&model.Params, v, target, c.Loss, max(1, c.Bands))
	AdamModel(model, g.VParams, c.Rates, c.Adam, c.Step)
	Statistics(model, v, g.Projection, g.VProjected)
	return g
}

// RasterizeBwd returns each pair's gradient, by slot, summed over the tile's pixels in row-major order. vRender is
// dL/d(r, g, b, alpha) per pixel, alpha being 1 - final transmittance. [n_isects]
func RasterizeBwd[T Real](splats []Projected[T], l *Lists, v *View[T], g Grid, vRender [][4]T) []ProjectedGrad[T] {
	vSlots, _ := RasterizeBwdAbs(splats, l, v, g, vRender)
	return vSlots
}

// tiles counts those that the splat of a rank touches.
func (l *Lists) tiles(rank int) int {
	return int(append(slices.Clone(l.FirstIsect), uint32(len(l.TileIDs)))[rank+1] - l.FirstIsect[rank])
}
