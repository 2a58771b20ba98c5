package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// trackErrors takes the errors of the step into the history.
func (v *view) trackErrors() {
	if !v.s.compare.robust {
		return
	}
	for note := range uint32(2) {
		v.r.Dispatch(&shaders.TrackErrors{Params: v.f.params, Counters: v.s.counters, Places: v.places,
			Errors:  v.errors,
			History: v.s.histories.words, Push: shaders.TrackErrorsPush{Note: note}},
			vk.Items(v.size.maxTiles*layout.TileSquares, 256))
	}
}
