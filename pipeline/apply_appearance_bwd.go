package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// correctionVectors is the number of vectors that a tile sums up of the gradient by a correction.
const correctionVectors = 7

// applyAppearanceBwd takes the gradient of the loss back through the photo's corrections, and to them.
func (v *view) applyAppearanceBwd() {
	if v.s.appearances == nil {
		return
	}
	vSeen := v.vShown
	v.vShown = vk.ScratchOf[[4]float32](v.r, "v_uncorrected", v.size.maxPixels)
	v.vCorrection = vk.ScratchOf[[4]float32](v.r, "v_correction", correctionVectors*v.size.maxTiles)
	v.r.Dispatch(&shaders.ApplyAppearanceBwd{
		Params: v.f.params, Correction: v.correction, Render: v.uncorrected, VSeen: vSeen, VRender: v.vShown,
		VCorrection: v.vCorrection,
	}, v.indirect(layout.ArgsTiles))
}
