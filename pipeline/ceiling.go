package pipeline

import (
	"fmt"
	"math"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// thinned returns the splats to start with: all, or for MCMC, which removes none, no more than there are to be in the
// end, at even distances.
func thinned(c *recipe.Config, s *scene.Splats) *scene.Splats {
	if c.Strategy != recipe.StrategyMCMC || c.Splats == 0 || s.N <= c.Splats {
		return s
	}
	t := scene.NewSplats(c.Splats, s.Degree)
	all, some := s.Tensors(), t.Tensors()
	for i := range t.N {
		from := int(int64(i) * int64(s.N) / int64(t.N))
		for k := range all {
			copy(some[k].At(i), all[k].At(from))
		}
	}
	return t
}

// Check makes sure that a run of splats at the start can be trained as planned.
func (p *Plan) Check(cfg recipe.Config, splats int) error {
	if cfg.Strategy == recipe.StrategyMCMC && cfg.Splats > 0 {
		splats = min(splats, cfg.Splats) // see thinned
	}
	return checkCeiling(&cfg, splats, p.Ceiling)
}

// checkCeiling makes sure that the splats at the start and at the end fit, and that refinement can get from one number
// to the other.
func checkCeiling(c *recipe.Config, start, ceiling int) error {
	all := c.Refinements()
	switch {
	case start > ceiling && ceiling == c.MaxSplats:
		return fmt.Errorf("start training: %w: %d to start with, at most %d are allowed",
			ErrTooMany, start, c.MaxSplats)
	case start > ceiling:
		return fmt.Errorf("start training: %w: %d splats to start with, %d fit", ErrTooSmall, start, ceiling)
	case c.Splats > ceiling:
		return fmt.Errorf("start training: %w: %d splats to end with, %d fit", ErrTooSmall, c.Splats, ceiling)
	case c.Splats == 0 || c.Splats == start:
	case all == 0:
		return fmt.Errorf("start training: %w: no refinement in %d steps makes %d splats from %d",
			errUnreachable, c.Iterations, c.Splats, start)
	case c.Strategy == recipe.Strategy3DGS && math.Ldexp(float64(start), all) < float64(c.Splats):
		return fmt.Errorf("start training: %w: %d refinements, each at most doubling the number, do not make %d "+
			"splats from %d", errUnreachable, all, c.Splats, start)
	}
	return nil
}
