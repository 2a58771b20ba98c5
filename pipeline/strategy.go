package pipeline

import "vksplat/pipeline/recipe"

// strategy decides where splats are added and removed.
type strategy interface {
	refine(v *view)       // records a refinement: chunks -> chunks, n_splats or failed
	variants() variants   // of the kernels of steps and carvings
	knowsFinalSize() bool // the number of splats at the end is given
}

// variants chooses what the kernels of steps and carvings do for a strategy.
type variants struct {
	absgrad     bool    // growth is decided by absolute gradients
	noise       bool    // means move at random after each step, and there may be splats of a far shell
	unseenParts int     // see adamUnseen
	reach       float32 // see carve
}

func strategyOf(cfg *recipe.Config, o *TrainerOptions) strategy {
	switch {
	case cfg.Strategy == recipe.StrategyMCMC:
		return strategyMCMC{absgrad: cfg.AbsGrad, noise: cfg.NoiseLR > 0 || o.Shell > 0}
	case cfg.Splats > 0:
		return strategyExact{absgrad: cfg.AbsGrad}
	}
	return strategy3DGS{absgrad: cfg.AbsGrad}
}
