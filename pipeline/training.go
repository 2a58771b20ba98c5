package pipeline

import (
	"slices"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// training decides what the units of a run do. Only Trainer.HoldAt changes it.
type training struct {
	cfg        recipe.Config
	sceneScale float64
	shell      float64 // radius of the far shell, see TrainerOptions
	cams       []scene.Camera
	start      int  // splats before the first step
	cameras    int  // number of cameras that took the photos
	carves     bool // floaters are carved before refinements
}

// shellFrom is the fraction of the far shell's radius from which on splats belong to it: training moves them less.
const shellFrom = 0.5

// setParams fills what the kernels of shard m read in u; views are those of the shards.
func (r *training) setParams(s *shards, m *shard, f *frame, u recipe.Unit, views []int) {
	if m.e.setup.world.alone() {
		f.lens.set(&r.cams[views[0]])
		r.viewOfUnit(f.hostParams, s, m, u, views[0])
		return
	}
	for w, view := range views {
		var p layout.StepParams
		r.viewOfUnit(&p, s, m, u, view)
		if slices.Contains(views[:w], view) {
			p.LrAppearance = notStepped
		}
		f.peers.set(w, &p)
	}
}

// viewOfUnit fills what the kernels of shard m read of one view of u.
func (r *training) viewOfUnit(p *layout.StepParams, s *shards, m *shard, u recipe.Unit, view int) {
	at := m.e.setup.world
	degree := min(u.Step/r.cfg.SHInterval, r.cfg.SHDegree)
	viewParams(&p.View, &r.cams[view], r.cfg.Near, degree, r.cfg.Antialiased, r.cfg.BackgroundOf(u.Step))
	r.cfg.LevelParams(p, u.Step)
	p.Unit, p.Step = u.Number, uint32(u.Step)
	p.SeedLo, p.SeedHi = uint32(r.cfg.Seed), uint32(r.cfg.Seed>>32)^at.salt()
	r.cfg.OptimiserParams(p, u.Step, r.sceneScale, at.size)
	r.cfg.PhotoParams(p, u.Step, view, m.photos.flags[view])
	r.cfg.AppearanceParams(p, u.Step, len(r.cams), r.cameras)
	r.cfg.StrategyParams(p, u.Step, r.sceneScale, at.size)
	p.Shell = float32(shellFrom * r.shell)
	p.TargetSplats = 0
	switch {
	case u.Kind == recipe.Refine && r.cfg.Cleans(u.Step):
		r.cfg.CleanParams(p)
	case u.Kind == recipe.Refine:
		p.TargetSplats = uint32(s.target(m, r.cfg.TargetSplats(r.start, s.ceiling(), u.Step)))
	}
	p.MaxSplats, p.SplatCapacity = uint32(m.maxSplats), uint32(m.e.setup.model.capacity())
}
