package recipe

import (
	"math"

	"vksplat/scene"
)

// Refines reports whether the splats are refined after step (counted from 0).
func (c Config) Refines(step int) bool {
	return c.RefineEvery > 0 && step > c.RefineStart && step < c.RefineStop && step%c.RefineEvery == 0
}

// Cleans reports whether what a finished model need not have is removed after step (counted from 0): after the last
// one, with Carve.
func (c Config) Cleans(step int) bool {
	return c.Carve > 0 && c.RefineEvery > 0 && step == c.Iterations-1 && !c.Refines(step)
}

// refinement returns which refinement of c the one after step is, from 1 on.
func refinement(c *Config, step int) int { return step/c.RefineEvery - c.RefineStart/c.RefineEvery }

// Refinements returns how many there are in a whole run.
func (c Config) Refinements() int {
	if c.RefineEvery <= 0 {
		return 0
	}
	return max(0, refinement(&c, min(c.RefineStop, c.DecaySteps())-1))
}

// Scaled returns the configuration with f times as many steps, and with everything that is counted in steps scaled
// alike. Numbers are rounded down, as gsplat does, but 1 is the least that a number above 0 becomes; 0, which stands
// for never, stays. Validate refuses what a factor that is not a positive number makes.
func (c Config) Scaled(f float64) Config {
	scale := func(n int) int {
		x := math.Floor(float64(n)*f + 1e-9) // 1e-9: 100 times 0.29 is 29
		switch {
		case n <= 0:
			return n
		case !(f > 0):
			return 0
		case x >= 1<<31:
			return 1 << 31
		}
		return max(1, int(x))
	}
	for i := range Settings {
		if n, ok := Settings[i].Of(&c).(*int); ok && Settings[i].Steps {
			*n = scale(*n)
		}
	}
	return c
}

// ForShare returns the configuration for a part of a capture that has a share of its photos, such that the part comes
// out about as it would in a training of the whole by c. A photo is trained on as often, in share times as many steps.
// A splat of the part is seen in 1/share times as many of these, and Adam makes less of that: where a gradient g comes
// with probability p in each of N steps, its two moments are about p g and p g², and all steps together go as N rate
// sqrt(p), which is sqrt(share) times that of the whole. So rates are larger by 1/sqrt(share).
func (c Config) ForShare(share float64) Config {
	c = c.Scaled(share)
	for _, rate := range c.SplatRates() {
		*rate /= math.Sqrt(share)
	}
	return c
}

// TargetSplats returns the number of splats that the refinement after step is to end with, 0 where the thresholds of
// the strategy 3dgs decide. It is a function of the numbers of splats at the start and at most, so that it needs no
// count from the device.
//
// To a given number N the strategy 3dgs goes along the parabola of Taming 3DGS (Mallick et al. 2024, equation 2):
// from the number at the start, ever slower, to N at the last refinement. Early splats have the time to be optimised,
// and late refinements, which only replace what was pruned, disturb little. MCMC grows by its factor, or, where that
// would not reach N, by the same larger one at each refinement.
//
// A run that is resumed with more iterations may refine more often than its schedule has: those refinements keep what
// the last of the schedule made.
func (c Config) TargetSplats(start, ceiling, step int) int {
	all := c.Refinements()
	r := min(refinement(&c, step), all)
	if c.Strategy == Strategy3DGS {
		if c.Splats == 0 || all == 0 {
			return c.Splats
		}
		left := 1 - float64(r)/float64(all)
		return c.Splats - int(math.Round(float64(c.Splats-start)*float64(left*left)))
	}
	if c.Splats > 0 {
		ceiling = min(ceiling, c.Splats)
	}
	n, last := start, start
	for k := 1; k <= all; k++ {
		last = max(last, min(ceiling, int(math.Floor(c.GrowFactor*float64(last)))))
		if k == r {
			n = last
		}
	}
	if c.Splats > 0 && last < c.Splats && all > 0 {
		n = max(n, int(math.Round(float64(start)*math.Pow(float64(c.Splats)/float64(start), float64(r)/float64(all)))))
	}
	return n
}

// SplatsFor returns a number of splats that goes with a capture: factor times the root of (pixels of the photos times
// points). Pixels alone say how much detail there could be: twice as many photos of one scene hold little that is new,
// and smooth things need few splats at any size. Points lie where photos have texture, but how many there are is the
// choice of the program that made them. Therefore points that are no measure, because there are none (0) or because
// they are far from one for about 2000 pixels, are taken for what is usual, or near to it.
func SplatsFor(cams []scene.Camera, points int, factor float64) int {
	pixels := 0.0
	for i := range cams {
		pixels += float64(cams[i].Width * cams[i].Height)
	}
	p := pixels / usualPixels
	if points > 0 {
		p = min(max(float64(points), pixels/sparsePixels), pixels/densePixels)
	}
	return max(1, int(math.Round(min(factor*math.Sqrt(pixels*p), math.MaxInt32))))
}

// Pixels of the photos for each point of a capture: as structure from motion has them, and the most and least that are
// believed.
const (
	usualPixels  = 2000
	sparsePixels = 10000
	densePixels  = 500
)

// StepsFor returns what the number of steps grows with: a power of the number of photos. How much a photo adds to what
// the others show falls with their number, and so does how often each needs to be looked at. See bench/README.md,
// "Recipes".
func StepsFor(photos int) float64 { return math.Pow(float64(photos), 2.0/3) }

// RefinesFrom reports whether a refinement comes after step (counted from 0) or a later one.
func (c Config) RefinesFrom(step int) bool {
	if c.RefineEvery <= 0 {
		return false
	}
	next := max(step, c.RefineStart+1) + c.RefineEvery - 1
	return next-next%c.RefineEvery < min(c.RefineStop, c.Iterations)
}
