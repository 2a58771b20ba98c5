package pipeline

import (
	"slices"

	"vksplat/scene"
	"vksplat/shaders/layout"
)

// recipe decides what the units of a run do. It stays as it is while the run goes on, but for Trainer.Hold.
type recipe struct {
	cfg        Config
	sceneScale float64
	cams       []scene.Camera
	start      int  // splats that training starts with: what the schedule of their number begins at
	carves     bool // floaters are carved before refinements
}

// after returns the unit that follows u.
func (r *recipe) after(u unit) unit {
	u.number++
	switch {
	case u.kind == unitStep && r.carves && r.refines(u.step):
		u.kind = unitCarve
	case (u.kind == unitStep || u.kind == unitCarve) && r.refines(u.step):
		u.kind = unitRefine
	case u.kind != unitReset && r.cfg.resets(u.step):
		u.kind = unitReset
	default:
		u.kind, u.step = unitStep, u.step+1
	}
	return u
}

// refines reports whether a refinement follows a step, if only one that removes.
func (r *recipe) refines(step int) bool { return r.cfg.refines(step) || r.cfg.cleans(step) }

// comes reports whether the schedule has u.
func (r *recipe) comes(u unit) bool {
	switch u.kind {
	case unitCarve:
		return r.carves && r.refines(u.step)
	case unitRefine:
		return r.refines(u.step)
	case unitReset:
		return r.cfg.resets(u.step)
	}
	return true
}

// setParams fills what the kernels of member m read in u, whose views are those of the members.
func (r *recipe) setParams(g *group, m *member, f *frame, u unit, views []int) {
	if m.e.world.alone() {
		r.viewOfUnit(f.hostParams, g, m, u, views[0])
		return
	}
	for w, view := range views {
		var p layout.StepParams
		r.viewOfUnit(&p, g, m, u, view)
		if slices.Contains(views[:w], view) {
			p.LrExposure = notStepped
		}
		f.peers.set(w, &p)
	}
}

// viewOfUnit fills what the kernels of member m read of one view of u.
func (r *recipe) viewOfUnit(p *layout.StepParams, g *group, m *member, u unit, view int) {
	at := m.e.world
	degree := min(u.step/r.cfg.SHInterval, r.cfg.SHDegree)
	viewParams(&p.View, &r.cams[view], r.cfg.Near, degree, r.cfg.Antialiased, r.cfg.backgroundOf(u.step))
	r.cfg.levelParams(p, u.step)
	p.Unit, p.Step = u.number, uint32(u.step)
	p.SeedLo, p.SeedHi = uint32(r.cfg.Seed), uint32(r.cfg.Seed>>32)^at.salt()
	r.cfg.optimiserParams(p, u.step, r.sceneScale, at.size())
	r.cfg.photoParams(p, u.step, view, m.photos.flags[view])
	r.cfg.strategyParams(p, u.step, r.sceneScale, at.size())
	p.TargetSplats = 0
	switch {
	case u.kind == unitRefine && r.cfg.cleans(u.step):
		r.cfg.cleanParams(p)
	case u.kind == unitRefine:
		p.TargetSplats = uint32(g.due(m, r.cfg.targetSplats(r.start, g.ceiling(), u.step)))
	}
	p.MaxSplats, p.SplatCapacity = uint32(m.maxSplats), uint32(m.e.model.capacity())
}
