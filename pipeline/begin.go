package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// talliesOfGroup is about how many tallies a workgroup of begin clears: few, because the unit waits for it.
const talliesOfGroup = 4096

// begin sets the counts and dispatch arguments that a unit starts with, and clears its tallies.
func (v *view) begin() {
	v.makeTallies()
	all := v.tallies.all
	if all.IsZero() {
		all = v.s.counters.At(0, 0) // not written
	}
	v.r.Dispatch(&shaders.Begin{Params: v.f.params, Counters: v.s.counters, DispatchArgs: v.s.args, Tallies: all,
		Push: shaders.BeginPush{NTallies: uint32(all.N())}}, vk.Items(max(all.N(), 1), talliesOfGroup))
}
