package recipe

import (
	"math"

	"vksplat/internal/philox"
	"vksplat/shaders/layout"
)

// OptimiserParams fills the settings, the learning rates and Adam's bias corrections of a step counted from 0 that
// trains on several views. More than one are a batch, for which learning rates grow by the root of their number, and
// Adam's averages go back over as many views as for one (Malladi et al. 2022; gsplat, Grendel).
func (c *Config) OptimiserParams(p *layout.StepParams, step int, sceneScale float64, views int) {
	root := math.Sqrt(float64(views))
	c.settingParams(p, sceneScale, root*cooldown(c, step))
	p.LrMeans = float32(root * lrMeans(c, step, sceneScale))
	gain1, gain2 := batchGain(layout.AdamBeta1, views), batchGain(layout.AdamBeta2, views)
	p.BatchBeta1, p.BatchRest1 = float32(1-gain1), float32(gain1)
	p.BatchBeta2, p.BatchRest2 = float32(1-gain2), float32(gain2)
	p.BatchEps = float32(layout.AdamEps / root)
	t := float64(step + 1)
	p.InvBias1 = float32(1 / (1 - math.Pow(1-gain1, t)))
	p.InvSqrtBias2 = float32(1 / math.Sqrt(1-math.Pow(1-gain2, t)))
}

// batchGain is 1 - beta of a batch of views.
func batchGain(beta float64, views int) float64 { return min(float64(views)*(1-beta), 1) }

// StrategyParams fills what the strategy needs, beside settings, after a step counted from 0 that trained on so many
// views.
func (c *Config) StrategyParams(p *layout.StepParams, step int, sceneScale float64, views int) {
	p.PruneScale = 0
	if c.ResetEvery > 0 && step > c.ResetEvery {
		p.PruneScale = float32(c.PruneScale * sceneScale)
	}
	p.ResetLogit = float32(math.Log(c.ResetOpacity / (1 - c.ResetOpacity)))
	p.NoiseScale = 0
	if c.Strategy == StrategyMCMC {
		p.NoiseScale = float32(math.Sqrt(float64(views)) * lrMeans(c, step, sceneScale) * c.NoiseLR)
	}
}

// CleanParams makes of a refinement one that adds nothing and removes what no picture shows: floaters, which are
// invisible by then, and splats below the alpha that renderers skip. A model with a given number of splats, or of MCMC,
// keeps that number: MCMC relocates its floaters, the strategy 3dgs leaves them, invisible.
func (c *Config) CleanParams(p *layout.StepParams) {
	p.TargetSplats, p.GrowGrad2d, p.PruneScale = 0, float32(math.Inf(1)), 0
	switch {
	case c.Strategy == StrategyMCMC:
		p.PruneOpacity = float32(2 * math.Exp(layout.InvisibleLogit))
	case c.Splats > 0:
		p.PruneOpacity = 0
	default:
		p.PruneOpacity = layout.AlphaThreshold
	}
}

// progress returns how much of the schedule has passed before a step counted from 0: 0 to 1.
func progress(c *Config, step int) float64 { return min(1, float64(step)/float64(c.DecaySteps())) }

// lrMeans returns the learning rate of the means at a step counted from 0, world units.
func lrMeans(c *Config, step int, sceneScale float64) float64 {
	return c.LRMeans * sceneScale * math.Pow(c.LRMeansFinal, progress(c, step)) * cooldown(c, step)
}

// cooldown returns what all learning rates of splats are multiplied by at a step counted from 0: 1 until the last share
// LRCooldown of the schedule, then falling exponentially to LRCooldownFinal.
func cooldown(c *Config, step int) float64 {
	begin := 1 - c.LRCooldown
	if at := progress(c, step); at > begin {
		return math.Pow(c.LRCooldownFinal, (at-begin)/c.LRCooldown)
	}
	return 1
}

// BackgroundOf returns the colour behind the scene at a training step.
func (c *Config) BackgroundOf(step int) (rgb [3]float32) {
	if !c.RandomBackground && c.BackgroundNoise == 0 {
		return c.Background
	}
	r := philox.Block([4]uint32{0, uint32(step), layout.DrawBackground, 0},
		[2]uint32{uint32(c.Seed), uint32(c.Seed >> 32)})
	for i := range rgb {
		rgb[i] = float32(r[i]>>8) / (1<<24 - 1) // 0 to 1, both included
		if !c.RandomBackground {
			rgb[i] = c.Background[i] + float32(c.BackgroundNoise)*(2*rgb[i]-1)
		}
	}
	return rgb
}

// PhotoParams fills how training photo id, which has these PHOTO_* bits, is compared at a step counted from 0.
func (c *Config) PhotoParams(p *layout.StepParams, step, id int, flags uint32) {
	p.PhotoFlags = flags
	p.ViewId = uint32(id)
}

// appearanceSteps are those of PPISP's runs, which lr_appearance is for: a shorter run takes larger ones, up to so much
// of a stop for a photo and of a coefficient for a camera.
const (
	appearanceSteps = 30000
	mostPhotoStep   = 0.25
	mostCameraStep  = 0.05
)

// AppearanceParams fills the learning rates of the photos' appearance at a step counted from 0, and Adam's constants.
// Below 0 nothing is learnt of it yet: first splats are off by more than photos differ, and would be excused by them.
//
// PPISP's Adam steps all photos at once, also the n-1 out of n that have no gradient. Here a photo moves in its own
// steps alone, as far as it would move until the next of them: its averages forget as much in one step as theirs in n,
// and the rate is what one gradient in n steps makes of it.
func (c *Config) AppearanceParams(p *layout.StepParams, step, photos, cameras int) {
	rest2 := -math.Expm1(float64(photos) * math.Log(layout.AdamBeta2))
	p.AppearanceBeta1 = float32(math.Pow(layout.AdamBeta1, float64(photos)))
	p.AppearanceBeta2 = float32(1 - rest2)
	if step < c.AppearanceStart {
		p.LrAppearance, p.LrVignetting = -1, -1
		return
	}
	steps := float64(max(c.DecaySteps()-c.AppearanceStart, 1))
	rate := c.LRAppearance * appearanceSteps / steps *
		math.Pow(c.LRAppearanceFinal, min(1, float64(step-c.AppearanceStart)/steps))
	p.LrAppearance = float32(min(rate*math.Sqrt(rest2/(1-layout.AdamBeta2)), mostPhotoStep))
	p.LrVignetting = float32(min(rate*math.Sqrt(float64(cameras)), mostCameraStep))
}

// Appearance reports whether anything is learnt of how photos look, which the splats do not hold.
func (c *Config) Appearance() bool { return c.Exposure || c.WhiteBalance || c.Vignetting }
