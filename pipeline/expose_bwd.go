package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// exposeBwd takes the gradient of the loss back through the photo's colour map, and to the map.
func (v *view) exposeBwd() {
	if v.exposures == nil {
		return
	}
	vExposed := v.vShown
	v.vShown = vk.ScratchOf[[4]float32](v.r, "v_unexposed", v.maxPixels)
	v.vAffine = vk.ScratchOf[[4]float32](v.r, "v_affine", 3*v.maxTiles)
	v.r.Dispatch(&shaders.ExposeBwd{
		Params: v.f.params, Exposures: v.exposureRows(), Render: v.unexposed, VExposed: vExposed, VRender: v.vShown,
		VAffine: v.vAffine,
	}, v.indirect(layout.ArgsTiles))
}
