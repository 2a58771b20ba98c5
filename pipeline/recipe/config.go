package recipe

import (
	"encoding/json"
	"errors"
	"fmt"

	"vksplat/shaders/layout"
)

const (
	Strategy3DGS = "3dgs" // adaptive density control of 3DGS (Kerbl et al. 2023, section 5)
	StrategyMCMC = "mcmc" // 3D Gaussian splatting as Markov chain Monte Carlo (Kheradmand et al. 2024)
)

// AbsGradThreshold is the GrowGrad2D that goes with AbsGrad: sums of absolute gradients are larger (Ye et al. 2024;
// gsplat's value).
const AbsGradThreshold = 8e-4

// unlisted is the part of Config that is no setting.
type unlisted struct {
	startedFor int // see StartedFor; 0: Iterations
}

// MCMC returns the recipe of 3DGS-MCMC for 30,000 steps and a million splats, in gsplat's values.
func MCMC() Config {
	c := Default()
	c.Strategy, c.MaxSplats, c.RefineStop, c.ResetEvery = StrategyMCMC, 1_000_000, 25000, 0
	c.InitOpacity, c.InitScale, c.OpacityReg, c.ScaleReg = 0.5, 0.1, 0.01, 0.01
	return c
}

// FormerRefine is what earlier versions called RefineCameras.
const FormerRefine = "refine_poses"

// UnmarshalJSON reads the configuration of any version.
func (c *Config) UnmarshalJSON(data []byte) error {
	type plain Config
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, (*plain)(c)), json.Unmarshal(data, &all)); err != nil {
		return err
	}
	if was, found := all[FormerRefine]; found {
		if err := json.Unmarshal(was, &c.RefineCameras); err != nil {
			return err
		}
	}
	if c.Strategy == "default" { // of old checkpoints
		c.Strategy = Strategy3DGS
	}
	return nil
}

// Validate reports every setting that is out of range, and settings that contradict each other, all at once.
func (c Config) Validate() error {
	var errs []error
	for i := range Settings {
		s := &Settings[i]
		errs = append(errs, s.Check(&c, s.Name, s.Range))
	}
	if c.Splats > c.MaxSplats && c.MaxSplats > 0 {
		errs = append(errs, fmt.Errorf("%d splats to end with, the ceiling is %d", c.Splats, c.MaxSplats))
	}
	if c.ResetEvery > 0 && c.PruneOpacity >= c.ResetOpacity {
		errs = append(errs, fmt.Errorf("splats below opacity %g are pruned, a reset would leave none above %g",
			c.PruneOpacity, c.ResetOpacity))
	}
	return errors.Join(errs...)
}

// StartedFor returns the configuration of a run that was started for n steps, whatever its Iterations are now.
func (c Config) StartedFor(steps int) Config {
	c.startedFor = steps
	return c
}

// DecaySteps returns the steps over which the means' learning rate decays: those that the run was started for.
func (c Config) DecaySteps() int {
	if c.startedFor > 0 {
		return c.startedFor
	}
	return c.Iterations
}

const (
	PrecisionFull = "full" // float32
	// spherical harmonics as halves, moments as bfloat16; the rest, and all arithmetic, in float32
	PrecisionMixed = "mixed"
)

// Rows says how a model that is trained by c is stored.
func (c *Config) Rows() layout.Rows { return layout.RowsOf(c.SHDegree, c.Precision == PrecisionMixed) }
