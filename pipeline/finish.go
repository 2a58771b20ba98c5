package pipeline

import (
	"vksplat/shaders"
	"vksplat/vk"
)

// finish reports to the host how the unit went.
func (v *view) finish(hasLoss bool) {
	p := &shaders.Finish{Params: v.f.params, Counters: v.s.counters, Partials: v.partials, Counted: v.counted,
		Report: v.f.report}
	if hasLoss {
		p.Push.HasLoss = 1
		if v.s.compare.counts() {
			p.Push.HasCounted = 1
		}
		if v.s.compare.robust {
			p.Push.HasCounted = 2
		}
	} else {
		p.Partials = vk.Cast[[3]float32](v.s.counters.View) // not read
		p.Counted = p.Partials
	}
	v.r.Dispatch(p, vk.Groups(1))
}
