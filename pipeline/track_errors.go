package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// trackErrors takes the errors of the step into their history.
func (v *view) trackErrors() {
	if !v.compare.robust {
		return
	}
	v.r.Dispatch(&shaders.TrackErrors{Params: v.f.params, Counters: v.counters, Errors: v.errors,
		History: v.histories.table, Push: shaders.TrackErrorsPush{Row: uint32(v.world.rank)}}, vk.Groups(1))
}
