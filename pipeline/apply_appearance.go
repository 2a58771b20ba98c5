package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// applyAppearance makes what the photo's camera would have made of the picture that is compared with the photo.
func (v *view) applyAppearance() {
	if v.s.appearances == nil {
		return
	}
	v.uncorrected = v.shown
	v.shown = vk.ScratchOf[[4]float32](v.r, "seen", v.size.maxPixels)
	v.r.Dispatch(&shaders.ApplyAppearance{
		Params: v.f.params, Correction: v.correction, Render: v.uncorrected, Seen: v.shown,
	}, v.indirect(layout.ArgsTiles)) // a workgroup has as many invocations as a tile pixels
}
