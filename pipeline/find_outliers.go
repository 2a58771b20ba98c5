package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// findOutliers finds which pixels of the picture that is compared with the photo count.
func (v *view) findOutliers() {
	c, tiles, bins := &v.compare, 0, 0
	if c.robust {
		tiles, bins = v.maxTiles, layout.ErrorBins
	}
	v.inliers = vk.ScratchOf[uint32](v.r, "inliers", layout.CountWords*tiles)
	v.errors = vk.ScratchOf[uint32](v.r, "errors", bins)
	if !c.robust {
		return
	}
	v.r.Fill(v.errors.View, 0)
	v.r.Dispatch(&shaders.FindOutliers{
		Params: v.f.params, History: v.histories.table, Render: v.shown, Target: v.target, Inliers: v.inliers,
		Errors: v.errors, Push: shaders.FindOutliersPush{Row: uint32(v.world.rank)},
		Spec: shaders.FindOutliersSpec{TargetFloat: c.floats, Masked: c.masked, Packed: c.packed, Shrunk: c.shrunk},
	}, v.indirect(layout.ArgsTiles))
}
