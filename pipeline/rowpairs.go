package pipeline

import (
	"errors"
	"slices"

	"vksplat/internal/parallel"
	"vksplat/pipeline/failure"
	"vksplat/pipeline/ref"
	"vksplat/scene"
)

// A row of tiles of a picture must fit the device, and how many (tile, splat) pairs it has depends on the view. Where
// pictures do not fit, the processor counts the pairs, so that the memory that an error names is enough.

// mostProjected is about how many splats are projected for that: some seconds of one core.
const mostProjected = 1 << 22

// rowPairs counts the pairs of all rows of tiles.
type rowPairs struct {
	views []*ref.View[float32]
	rows  [][]int // of each view
}

// countRows prepares for views of cameras; of many, with many splats, for some.
func countRows(splats int, cameras []scene.Camera, cfg *RenderConfig) *rowPairs {
	c := &rowPairs{}
	n := min(max(mostProjected/max(splats, 1), 1), len(cameras))
	for k := range n {
		v := plainView(&cameras[k*len(cameras)/n], cfg)
		c.views, c.rows = append(c.views, v), append(c.rows, make([]int, v.Grid().Rows))
	}
	return c
}

// add counts the pairs of a piece of the model.
func (c *rowPairs) add(piece *scene.Splats) error {
	params := paramsOf(piece)
	parallel.For(len(c.views), func(k int) {
		for row, n := range ref.Project(params, c.views[k]).RowPairs(c.views[k].Grid()) {
			c.rows[k][row] += n
		}
	})
	return nil
}

// addAll counts the pairs of a model.
func (c *rowPairs) addAll(s *scene.Splats) *rowPairs {
	for lo := 0; lo < s.N; lo += pieceSplats {
		_ = c.add(s.Slice(lo, min(lo+pieceSplats, s.N))) // which does not fail
	}
	return c
}

// room returns for how many pairs there must be room, with some to spare for views that were not counted.
func (c *rowPairs) room() int {
	most := 0
	for _, rows := range c.rows {
		most = max(most, slices.Max(rows))
	}
	return max(minIsects, most+most/8)
}

// plainView is a camera's view in colours that do not matter, without what its lens bends.
func plainView(c *scene.Camera, cfg *RenderConfig) *ref.View[float32] {
	v := &ref.View[float32]{Fx: float32(c.Fx), Fy: float32(c.Fy), Cx: float32(c.Cx), Cy: float32(c.Cy), Width: c.Width,
		Height: c.Height, Near: float32(cfg.Near), Fisheye: c.Model == scene.Fisheye, Antialiased: cfg.Antialiased}
	for i, x := range c.R {
		v.R[i] = float32(x)
	}
	for i, x := range c.T {
		v.T[i] = float32(x)
	}
	return v
}

// needsToDraw is w, what a model takes at least, with the fullest row of its pictures.
func (d *Device) needsToDraw(s *scene.Splats, cameras []scene.Camera, cfg *RenderConfig, w renderNeeds) renderNeeds {
	isects := countRows(s.N, cameras, cfg).addAll(s).room()
	if full, err := d.renderNeedsOf(s.N, s.Degree, cameras, cfg.inParts(), isects); err == nil {
		w.device = max(w.device, full.device)
	}
	return w
}

// shortOfRow adds to the error of a picture of which a row of tiles did not fit how much memory is enough.
func (r *Renderer) shortOfRow(err error) error {
	if r.paged != nil || !IsShortage(err) {
		return err
	}
	w, failed := r.needsOfWhole()
	if failed != nil { // no memory helps
		return err
	}
	return r.dev.shortOfRender(r.splats, w, err, r.cfg.Smaller)
}

// raiseForWhole says how much memory is enough for a model that is larger than the device, and its pictures.
func (r *Renderer) raiseForWhole() string {
	w, err := r.needsOfWhole()
	if err != nil {
		return failure.RaiseMemory()
	}
	return "raise " + r.dev.enoughFor(w) + " or more"
}

// needsOfWhole is what the model and its pictures take on a device that holds both, those that are being drawn too.
func (r *Renderer) needsOfWhole() (w renderNeeds, err error) {
	cameras := slices.Clone(r.cameras)
	for _, d := range r.flying {
		cameras = append(cameras, d.camera)
	}
	c := countRows(r.splats, cameras, &r.cfg)
	if r.share != nil {
		c.addAll(r.share.whole)
	} else if err = errors.Join(r.e.startAfresh(), r.e.model.read(r.splats, pieceSplats/16, c.add)); err != nil {
		return w, err
	}
	return r.dev.renderNeedsOf(r.splats, r.e.model.Degree, cameras, r.cfg.inParts(), c.room())
}
