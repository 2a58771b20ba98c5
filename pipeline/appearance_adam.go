package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// appearanceAdam steps the optimiser of the photo's appearance.
func (v *view) appearanceAdam() {
	if v.appearances == nil {
		return
	}
	v.r.Dispatch(&shaders.AppearanceAdam{Params: v.f.params, Counters: v.counters, Correction: v.correction,
		VCorrection: v.vCorrection, Appearances: v.appearances.table}, vk.Groups(1))
}
