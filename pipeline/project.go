package pipeline

import (
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// project culls and projects the splats for the unit's view.
func (v *view) project() { v.projectFor(v.f.params) }

// projectFor culls and projects the splats for the view of params, chunk by chunk. Each chunk's kernel is given its own
// part of what all write, so that no barrier keeps the next one waiting.
func (v *view) projectFor(params vk.Slice[layout.StepParams]) {
	n := v.s.model.capacity()
	scratch(v.r, &v.shapes, "shapes", 2*n)
	scratch(v.r, &v.paints, "paints", n)
	scratch(v.r, &v.depthKeys, "depth_keys", n)
	if v.s.model.pages != nil {
		v.projectPages(params)
		return
	}
	for _, c := range v.s.model.chunks {
		first, size := c.first, c.splats
		var pass vk.Pass = &shaders.Project{
			Params: params, Counters: v.s.counters, Chunk: c.Slice,
			Shapes: v.shapes.At(2*first, 2*size), Paints: v.paints.At(first, size),
			DepthKeys: v.depthKeys.At(first, size), Mixed: v.s.model.Mixed,
			Push: shaders.ProjectPush{FirstId: uint32(first), ChunkSplats: uint32(size)},
		}
		if v.s.lens.bent {
			pass = vk.Derive(pass, func(p *shaders.ProjectLens) {
				p.Lens, p.Spec.Shutter = v.f.lens.lens, v.s.lens.shutter
			})
		}
		v.r.Dispatch(pass, vk.Items(size, 128))
	}
}
