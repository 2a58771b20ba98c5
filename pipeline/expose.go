package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// expose applies the photo's colour map to the picture that is compared with it.
func (v *view) expose() {
	if v.exposures == nil {
		return
	}
	v.unexposed = v.shown
	v.shown = vk.ScratchOf[[4]float32](v.r, "exposed", v.maxPixels)
	v.r.Dispatch(&shaders.Expose{
		Params: v.f.params, Exposures: v.exposureRows(), Render: v.unexposed, Exposed: v.shown,
	}, v.indirect(layout.ArgsTiles)) // a workgroup has as many invocations as a tile pixels
}
