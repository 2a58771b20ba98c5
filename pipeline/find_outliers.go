package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// findOutliers finds which pixels of the picture that is compared with the photo count.
func (v *view) findOutliers() {
	c, tiles := &v.s.compare, 0
	if c.robust {
		tiles = v.size.maxTiles
	}
	v.inliers = vk.ScratchOf[uint32](v.r, "inliers", layout.CountWords*tiles)
	if !c.robust {
		return
	}
	v.errors = vk.ScratchOf[uint32](v.r, "errors", tiles*layout.TileSquares)
	v.r.Dispatch(&shaders.FindOutliers{
		Params: v.f.params, History: v.s.histories.words, Render: v.shown, Target: v.s.target, Places: v.places,
		Inliers: v.inliers, Errors: v.errors,
		Spec: shaders.FindOutliersSpec{TargetFloat: c.floats, Masked: c.masked, Packed: c.packed, Shrunk: c.shrunk},
	}, v.indirect(layout.ArgsTiles))
}
