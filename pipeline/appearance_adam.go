package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// appearanceAdam steps the optimiser of the photo's appearance.
func (v *view) appearanceAdam() {
	if v.s.appearances == nil {
		return
	}
	v.r.Dispatch(&shaders.AppearanceAdam{Params: v.f.params, Counters: v.s.counters, Correction: v.correction,
		VCorrection: v.vCorrection, Appearances: v.s.appearances.table}, vk.Groups(1))
}
