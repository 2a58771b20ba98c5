package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// exposureAdam steps the optimiser of the photo's colour map.
func (v *view) exposureAdam() {
	if v.exposures == nil {
		return
	}
	v.r.Dispatch(&shaders.ExposureAdam{Params: v.f.params, Counters: v.counters, VAffine: v.vAffine,
		Exposures: v.exposures.table}, vk.Groups(1))
}
