package pipeline

import (
	"errors"
	"fmt"
	"math"

	"vksplat/internal/fault"
)

// Strategies of Config.
const (
	StrategyDefault = "default" // adaptive density control of 3DGS (Kerbl et al. 2023, section 5)
	StrategyMCMC    = "mcmc"    // 3D Gaussian splatting as Markov chain Monte Carlo (Kheradmand et al. 2024)
)

// AbsGradThreshold is the GrowGrad2D that goes with AbsGrad: sums of absolute gradients are larger (Ye et al. 2024; gsplat's value).
const AbsGradThreshold = 8e-4

// Config says how a scene is trained: everything that, beside the capture, the device and the program, decides the bytes of a model. The defaults are the
// published recipe of 3DGS (Kerbl et al. 2023) in the values of INRIA's and gsplat's code. Lengths are in the training frame, where the median camera
// distance is 1. The JSON names are also the keys of configuration files and, with dashes, the flags of the command.
type Config struct {
	Iterations       int        `json:"iterations"`         // training steps, one view each
	Seed             uint64     `json:"seed"`               // of every random number
	SHDegree         int        `json:"sh_degree"`          // 0..3, of the model
	SHInterval       int        `json:"sh_degree_interval"` // steps after which one more SH degree is trained
	Background       [3]float32 `json:"background"`         // colour behind the scene, 0..1
	RandomBackground bool       `json:"random_background"`  // another colour every step, for training alone
	Precision        string     `json:"precision"`          // full or mixed, of what the device stores
	Antialiased      bool       `json:"antialiased"`        // Mip-Splatting's opacity compensation (Yu et al. 2024)
	Near             float64    `json:"near"`               // near plane
	Carve            float64    `json:"carve"`              // share of the depth where a view's points begin that is empty space, where no splat may stay; 0: none

	NumDownscales      int `json:"num_downscales"`      // times that width and height of the photos are halved in the first steps; 0: they are trained at full size
	ResolutionSchedule int `json:"resolution_schedule"` // steps after which they are doubled, until they are full

	SSIMSame    bool    `json:"ssim_same"`    // SSIM windows that leave the image count (INRIA); otherwise only those inside do (gsplat)
	SSIMLambda  float64 `json:"ssim_lambda"`  // share of D-SSIM in the loss
	AlphaLoss   float64 `json:"alpha_loss"`   // weight of the mean |alpha - photo's alpha|; 0: photos are composited over the background only
	OpacityReg  float64 `json:"opacity_reg"`  // weight of the mean opacity
	ScaleReg    float64 `json:"scale_reg"`    // weight of the mean scale
	Exposure    bool    `json:"exposure"`     // learn a 3x4 colour map for each photo
	LRExposure  float64 `json:"lr_exposure"`  // of these maps
	ExposureReg float64 `json:"exposure_reg"` // weight of their mean squared distance from the identity

	// Share of LRExposure that is left at the end; decays exponentially (Kerbl et al. 2024: 0.01 to 0.001).
	LRExposureFinal float64 `json:"lr_exposure_final"`

	LRMeans        float64 `json:"lr_means"`       // times the scene scale
	LRMeansFinal   float64 `json:"lr_means_final"` // share of LRMeans that is left at the end; decays exponentially
	LRLogScales    float64 `json:"lr_log_scales"`
	LRQuats        float64 `json:"lr_quats"`
	LRLogitOpacity float64 `json:"lr_logit_opacities"`
	LRSH0          float64 `json:"lr_sh0"`
	LRSHN          float64 `json:"lr_shn"`

	InitOpacity float64 `json:"init_opacity"` // of splats made from points
	InitScale   float64 `json:"init_scale"`   // times the mean distance to the three nearest points

	Strategy       string  `json:"strategy"`        // default or mcmc
	MaxSplats      int     `json:"max_splats"`      // ceiling of the model; 0: what memory allows
	Splats         int     `json:"splats"`          // the number of splats to end with; 0: what the strategy makes of it
	RefineStart    int     `json:"refine_start"`    // refinement runs at multiples of RefineEvery above RefineStart and below RefineStop
	RefineStop     int     `json:"refine_stop"`     //
	RefineEvery    int     `json:"refine_every"`    // steps; 0: never
	ResetEvery     int     `json:"reset_every"`     // steps between opacity resets, below RefineStop; 0: never
	AbsGrad        bool    `json:"absgrad"`         // grow by sums of absolute gradients (Ye et al. 2024, AbsGS)
	RevisedOpacity bool    `json:"revised_opacity"` // a splat that is split or duplicated gets 1 - sqrt(1 - opacity) (Bulo et al. 2024)
	GrowGrad2D     float64 `json:"grow_grad2d"`     // mean norm of the 2D gradient, in units of half the image, above which a splat grows
	GrowScale      float64 `json:"grow_scale"`      // times the scene scale: smaller ones are duplicated, larger ones split
	PruneOpacity   float64 `json:"prune_opacity"`   // opacity below which a splat is removed, or with mcmc relocated
	PruneScale     float64 `json:"prune_scale"`     // times the scene scale: larger ones are removed once opacities have been reset
	ResetOpacity   float64 `json:"reset_opacity"`   // ceiling of opacities after a reset
	GrowFactor     float64 `json:"grow_factor"`     // mcmc: the number of splats grows by this factor at each refinement, up to the ceiling
	NoiseLR        float64 `json:"noise_lr"`        // mcmc: times the means' learning rate, of the noise that explores

	scheduleIterations int // steps over which the means' learning rate decays, where a run goes on with more of them; 0: Iterations

	startCapacities int // tests: multiplies the first guess of buffer capacities; 0: 1
	bands           int // tests: bands to start with; 0: 1
}

// DefaultConfig returns the default recipe for 30,000 steps.
func DefaultConfig() Config {
	return Config{
		Iterations: 30000, Seed: 42, SHDegree: 3, Precision: PrecisionFull, Near: 0.01, Carve: 0.7, SSIMLambda: 0.2, SHInterval: 1000, ResolutionSchedule: 3000,
		LRMeans: 1.6e-4, LRMeansFinal: 0.01, LRLogScales: 5e-3, LRQuats: 1e-3, LRLogitOpacity: 5e-2, LRSH0: 2.5e-3, LRSHN: 1.25e-4,
		LRExposure: 0.01, LRExposureFinal: 0.1, ExposureReg: 0.01, InitOpacity: 0.1, InitScale: 1,
		Strategy: StrategyDefault, RefineStart: 500, RefineStop: 15000, RefineEvery: 100, ResetEvery: 3000,
		GrowGrad2D: 2e-4, GrowScale: 0.01, PruneOpacity: 0.005, PruneScale: 0.1, ResetOpacity: 0.01, GrowFactor: 1.05, NoiseLR: 5e5,
	}
}

// MCMCConfig returns the recipe of 3DGS-MCMC for 30,000 steps and a million splats, in gsplat's values.
func MCMCConfig() Config {
	c := DefaultConfig()
	c.Strategy, c.MaxSplats, c.RefineStop, c.ResetEvery = StrategyMCMC, 1_000_000, 25000, 0
	c.InitOpacity, c.InitScale, c.OpacityReg, c.ScaleReg = 0.5, 0.1, 0.01, 0.01
	return c
}

// Validate reports every field that is out of range, all at once.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("check config: "+format, args...))
		}
	}
	check(c.Iterations >= 1 && c.Iterations < 1<<31, "%d iterations, 1 to 2147483647 are possible", c.Iterations)
	check(c.SHDegree >= 0 && c.SHDegree <= 3, "SH degree %d, 0 to 3 are possible", c.SHDegree)
	check(c.Near > 0 && !math.IsInf(c.Near, 0), "near plane %g, it must be positive", c.Near)
	check(c.Carve >= 0 && c.Carve <= 1, "carve %g, 0 to 1 are possible", c.Carve)
	check(c.SSIMLambda >= 0 && c.SSIMLambda <= 1, "SSIM share %g, 0 to 1 are possible", c.SSIMLambda)
	check(c.Strategy == StrategyDefault || c.Strategy == StrategyMCMC, "strategy %q, %s and %s are known", c.Strategy, StrategyDefault, StrategyMCMC)
	check(c.Precision == PrecisionFull || c.Precision == PrecisionMixed, "precision %q, %s and %s are known", c.Precision, PrecisionFull, PrecisionMixed)
	check(c.Splats >= 0 && c.Splats < 1<<31, "%d splats to end with, 0 to 2147483647 are possible", c.Splats)
	check(c.Splats == 0 || c.MaxSplats == 0 || c.Splats <= c.MaxSplats, "%d splats to end with, the ceiling is %d", c.Splats, c.MaxSplats)
	check(c.InitOpacity > 0 && c.InitOpacity < 1, "opacity %g to start with, it must be between 0 and 1", c.InitOpacity)
	check(c.InitScale > 0 && !math.IsInf(c.InitScale, 0), "scale %g to start with, it must be positive", c.InitScale)
	check(c.GrowFactor >= 1 && !math.IsInf(c.GrowFactor, 0), "growth factor %g, at least 1 is needed", c.GrowFactor)
	check(c.SHInterval >= 1, "SH interval of %d steps, at least 1 is needed", c.SHInterval)
	check(c.NumDownscales >= 0 && c.NumDownscales <= maxDownscales, "%d downscales, 0 to %d are possible", c.NumDownscales, maxDownscales)
	check(c.ResolutionSchedule >= 1, "resolution schedule of %d steps, at least 1 is needed", c.ResolutionSchedule)
	check(c.MaxSplats >= 0, "a ceiling of %d splats, it must not be negative", c.MaxSplats)
	check(c.RefineEvery >= 0 && c.ResetEvery >= 0, "refinement every %d and reset every %d steps, neither may be negative", c.RefineEvery, c.ResetEvery)
	check(c.RefineStart >= 0 && c.RefineStop >= 0, "refinement from step %d to %d, neither may be negative", c.RefineStart, c.RefineStop)
	for i, v := range c.Background {
		check(v >= 0 && v <= 1, "background channel %d is %g, 0 to 1 are possible", i, v)
	}
	check(c.LRMeansFinal > 0 && c.LRMeansFinal <= 1, "final share of the means' learning rate %g, above 0 to 1 is possible", c.LRMeansFinal)
	check(c.LRExposureFinal > 0 && c.LRExposureFinal <= 1, "final share of the colour maps' learning rate %g, above 0 to 1 is possible", c.LRExposureFinal)
	for _, f := range []struct {
		flag  string
		value float64
	}{
		{"alpha-loss", c.AlphaLoss}, {"opacity-reg", c.OpacityReg}, {"scale-reg", c.ScaleReg}, {"exposure-reg", c.ExposureReg}, {"noise-lr", c.NoiseLR},
		{"lr-exposure", c.LRExposure}, {"lr-means", c.LRMeans}, {"lr-log-scales", c.LRLogScales}, {"lr-quats", c.LRQuats},
		{"lr-logit-opacities", c.LRLogitOpacity}, {"lr-sh0", c.LRSH0}, {"lr-shn", c.LRSHN},
		{"grow-grad2d", c.GrowGrad2D}, {"grow-scale", c.GrowScale}, {"prune-opacity", c.PruneOpacity}, {"prune-scale", c.PruneScale},
	} {
		check(f.value >= 0 && f.value <= math.MaxFloat32, "%s is %g, 0 to %g are possible",
			fault.Setting(f.flag), f.value, float32(math.MaxFloat32)) // kernels take float32
	}
	check(c.ResetEvery == 0 || c.PruneOpacity < c.ResetOpacity, "splats below opacity %g are pruned, a reset would leave none above %g", c.PruneOpacity, c.ResetOpacity)
	check(c.ResetOpacity > 0 && c.ResetOpacity < 1, "opacity after a reset %g, it must be between 0 and 1", c.ResetOpacity)
	return errors.Join(errs...)
}

// schedule returns the steps over which the means' learning rate decays: those that the run was started for.
func (c Config) schedule() int {
	if c.scheduleIterations > 0 {
		return c.scheduleIterations
	}
	return c.Iterations
}
