package pipeline

import (
	"errors"
	"fmt"
	"math"
)

// Config says how a scene is trained. The defaults are the published recipe of 3DGS (Kerbl et al. 2023) in the values of INRIA's and gsplat's code.
// Lengths are in the training frame, where the median camera distance is 1.
type Config struct {
	Iterations  int        // training steps, one view each
	Seed        uint64     // of every random number
	SHDegree    int        // 0..3, of the model
	Background  [3]float32 // colour behind the scene, 0..1
	Antialiased bool       // Mip-Splatting's opacity compensation (Yu et al. 2024)
	Near        float64    // near plane
	SSIMSame    bool       // SSIM windows that leave the image count (INRIA); otherwise only those inside do (gsplat)
	SSIMLambda  float64    // share of D-SSIM in the loss
	MaxSplats   int        // ceiling of the model; 0: what memory allows

	SHInterval      int     // steps after which one more SH degree is trained
	LRMeans         float64 // times the scene scale
	LRMeansFinal    float64 // share of LRMeans that is left at the end; decays exponentially
	LRLogScales     float64
	LRQuats         float64
	LRLogitOpacity  float64
	LRSH0           float64
	LRSHN           float64
	RefineStart     int     // refinement runs at multiples of RefineEvery above RefineStart and below RefineStop
	RefineStop      int     //
	RefineEvery     int     // steps; 0: never
	ResetEvery      int     // steps between opacity resets, below RefineStop; 0: never
	GrowGrad2D      float64 // mean norm of the 2D gradient, in units of half the image, above which a splat grows
	GrowScale       float64 // times the scene scale: smaller ones are duplicated, larger ones split
	PruneOpacity    float64 // opacity below which a splat is removed
	PruneScale      float64 // times the scene scale: larger ones are removed once opacities have been reset
	ResetOpacity    float64 // ceiling of opacities after a reset
	startCapacities int     // tests: multiplies the first guess of buffer capacities; 0: 1
	bands           int     // tests: bands to start with; 0: 1
}

// DefaultConfig returns the default recipe for 30,000 steps.
func DefaultConfig() Config {
	return Config{
		Iterations: 30000, Seed: 42, SHDegree: 3, Near: 0.01, SSIMLambda: 0.2, SHInterval: 1000,
		LRMeans: 1.6e-4, LRMeansFinal: 0.01, LRLogScales: 5e-3, LRQuats: 1e-3, LRLogitOpacity: 5e-2, LRSH0: 2.5e-3, LRSHN: 1.25e-4,
		RefineStart: 500, RefineStop: 15000, RefineEvery: 100, ResetEvery: 3000,
		GrowGrad2D: 2e-4, GrowScale: 0.01, PruneOpacity: 0.005, PruneScale: 0.1, ResetOpacity: 0.01,
	}
}

// Validate reports every field that is out of range, all at once.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("pipeline: check config: "+format, args...))
		}
	}
	check(c.Iterations >= 1 && c.Iterations < 1<<31, "%d iterations, at least 1 is needed", c.Iterations)
	check(c.SHDegree >= 0 && c.SHDegree <= 3, "SH degree %d, 0 to 3 are possible", c.SHDegree)
	check(c.Near > 0 && !math.IsInf(c.Near, 0), "near plane %g, it must be positive", c.Near)
	check(c.SSIMLambda >= 0 && c.SSIMLambda <= 1, "SSIM share %g, 0 to 1 are possible", c.SSIMLambda)
	check(c.SHInterval >= 1, "SH interval of %d steps, at least 1 is needed", c.SHInterval)
	check(c.MaxSplats >= 0, "a ceiling of %d splats, it must not be negative", c.MaxSplats)
	check(c.RefineEvery >= 0 && c.ResetEvery >= 0, "refinement every %d and reset every %d steps, neither may be negative", c.RefineEvery, c.ResetEvery)
	for i, v := range c.Background {
		check(v >= 0 && v <= 1, "background channel %d is %g, 0 to 1 are possible", i, v)
	}
	for _, lr := range []float64{c.LRMeans, c.LRLogScales, c.LRQuats, c.LRLogitOpacity, c.LRSH0, c.LRSHN} {
		check(lr >= 0 && !math.IsInf(lr, 0), "learning rate %g, it must not be negative", lr)
	}
	check(c.LRMeansFinal > 0 && c.LRMeansFinal <= 1, "final share of the means' learning rate %g, above 0 to 1 is possible", c.LRMeansFinal)
	for _, x := range []float64{c.GrowGrad2D, c.GrowScale, c.PruneOpacity, c.PruneScale} {
		check(x >= 0 && !math.IsInf(x, 0), "refinement threshold %g, it must not be negative", x)
	}
	check(c.ResetEvery == 0 || c.PruneOpacity < c.ResetOpacity, "splats below opacity %g are pruned, a reset would leave none above %g", c.PruneOpacity, c.ResetOpacity)
	check(c.ResetOpacity > 0 && c.ResetOpacity < 1, "opacity after a reset %g, it must be between 0 and 1", c.ResetOpacity)
	return errors.Join(errs...)
}

// refines reports whether the splats are refined after step (counted from 0).
func (c Config) refines(step int) bool {
	return c.RefineEvery > 0 && step > c.RefineStart && step < c.RefineStop && step%c.RefineEvery == 0
}

// resets reports whether opacities are reset after step (counted from 0).
func (c Config) resets(step int) bool {
	return c.RefineEvery > 0 && c.ResetEvery > 0 && step > 0 && step < c.RefineStop && step%c.ResetEvery == 0
}
