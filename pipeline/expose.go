package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// expose applies the photo's colour map to the rendering. Without exposure the photo is compared with the rendering
// itself.
func (v *view) expose() {
	v.exposed = v.render
	if v.exposures == nil {
		return
	}
	v.exposed = vk.ScratchOf[[4]float32](v.r, "exposed", v.maxPixels)
	v.r.Dispatch(&shaders.Expose{
		Params: v.f.params, Exposures: v.exposureRows(), Render: v.render, Exposed: v.exposed,
	}, v.indirect(layout.ArgsTiles)) // a workgroup has as many invocations as a tile pixels
}
