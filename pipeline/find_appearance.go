package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// findAppearance finds what the step's photo has of exposure, white balance and vignetting.
func (v *view) findAppearance() {
	if v.s.appearances == nil {
		return
	}
	v.correction = vk.ScratchOf[layout.Correction](v.r, "correction", 1)
	v.r.Dispatch(&shaders.FindAppearance{
		Params: v.f.params, Appearances: v.appearanceRows(), Correction: v.correction,
		Push: shaders.FindAppearancePush{NViews: uint32(v.s.appearances.table.N())},
	}, vk.Groups(1))
}
