package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// Look chooses what a picture shows.
type Look uint32

const (
	LookColor Look = layout.LookColor // the model's colours
	// red is the sum of weight times camera z in the training frame, green the sum of weights, blue that of weight
	// times z squared; no background
	LookDepth      Look = layout.LookDepth
	LookCenters    Look = layout.LookCenters    // a dot where each splat is
	LookEllipsoids Look = layout.LookEllipsoids // splats are opaque up to 1.5 standard deviations and end there
)

// look changes what pictures show, by params.
func (v *view) look(params vk.Slice[layout.StepParams]) {
	v.r.Dispatch(&shaders.Look{Params: params, Counters: v.s.counters, DepthKeys: v.depthKeys, Shapes: v.shapes,
		Paints: v.paints},
		vk.Items(v.s.projections(), 256))
}
