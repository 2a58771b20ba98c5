package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// begin sets the counts and dispatch arguments that a unit starts with.
func (v *view) begin() {
	v.clearTallies()
	v.r.Dispatch(&shaders.Begin{Params: v.f.params, Counters: v.counters, DispatchArgs: v.args}, vk.Groups(1))
}
