package recipe

import "math"

// Given are values that are known beforehand.
func Given(values map[string]any) func(*Resolved) map[string]any {
	return func(*Resolved) map[string]any { return values }
}

// OfPreset stretches the numbers of steps that a preset gives to the iterations that are asked for, where the preset
// has a number of its own: its recipe is meant as a whole. values are the preset's.
func OfPreset(values map[string]any) func(*Resolved) map[string]any {
	return func(below *Resolved) map[string]any {
		own, has := values["iterations"].(int)
		if !has || !below.Chosen("iterations") || below.Config.Iterations < 1 { // Validate refuses that
			return nil
		}
		scaled := below.Config.Scaled(float64(below.Config.Iterations) / float64(own))
		l := map[string]any{}
		for name := range values {
			if s := SettingNamed(name); s != nil && s.Steps && !below.Chosen(name) {
				l[name] = s.Value(&scaled)
			}
		}
		return l
	}
}

// Derived gives settings that follow from others, unless the user chose them.
func Derived(below *Resolved) map[string]any {
	c, l := &below.Config, map[string]any{}
	if c.AbsGrad && below.Origin("grow_grad2d") == FromDefault {
		l["grow_grad2d"] = AbsGradThreshold
	}
	mcmc := c.Strategy == StrategyMCMC && c.Splats > 0 // never exceeds Splats: no memory for more
	if c.MaxSplats > 0 && (mcmc || c.Splats > c.MaxSplats) && !below.Chosen("max_splats") {
		l["max_splats"] = c.Splats
	}
	return l
}

// Stretched multiplies all numbers of steps.
func Stretched(factor float64) Layer { return multiplied(factor, Config.Scaled) }

// Shared is Config.ForShare.
func Shared(share float64) Layer { return multiplied(share, Config.ForShare) }

// multiplied is a layer of the numbers of steps and rates that f makes by a factor.
func multiplied(factor float64, f func(Config, float64) Config) Layer {
	return Layer{Values: func(below *Resolved) map[string]any {
		c, l := below.Config, map[string]any{}
		if factor != 1 {
			c = f(c, factor)
		}
		for i := range Settings {
			if s := &Settings[i]; s.Steps || s.Rate {
				l[s.Name] = s.Value(&c)
			}
		}
		return l
	}}
}

// Resumed is what a run was begun with, but for settings that are asked for now or computed again.
func Resumed(was Config, computed func(s *Setting) bool) func(*Resolved) map[string]any {
	return func(below *Resolved) map[string]any {
		l := map[string]any{}
		for i := range Settings {
			if s := &Settings[i]; !computed(s) && !below.Chosen(s.Name) {
				l[s.Name] = s.Value(&was)
			}
		}
		_, resumed := l["absgrad"]
		if !resumed && below.Config.AbsGrad && !was.AbsGrad && !below.Chosen("grow_grad2d") {
			l["grow_grad2d"] = AbsGradThreshold
		}
		return l
	}
}

// Factors choose settings by the capture, see Followed. 0: it does not.
type Factors struct {
	IterationsFactor float64 `json:"iterations_factor"` // steps
	SplatsFactor     float64 `json:"splats_factor"`     // splats to end with
	FewPhotos        int     `json:"few_photos"`        // penalties, for captures of fewer photos
}

// leastStart is the shorter side in pixels of the smallest photos that a schedule for the capture begins with: those of
// half the size show too little to be worth their steps.
const leastStart = 128

// How FewPhotos raises the penalties: below a share of it, with which most places are seen by a few photos at best,
// more steeply, and up to mostPenalty times. bench/README.md has what that brings.
const (
	veryFew     = 0.4
	mostPenalty = 10
)

// Followed chooses what follows the photos and points that training knows: steps, splats and penalties.
type Followed struct {
	Factors
	Photos   int  // that are trained on
	Smallest int  // the shorter side of the smallest of them in pixels
	Adapts   bool // the preset follows the capture, even where a number of steps was given
	Scaler   float64
	Share    float64             // of the whole capture's steps that a block is trained for; 1 for all others
	Splats   func(f float64) int // SplatsFor the capture
	Ceiling  int                 // splats that a run had room for when it was begun; 0: unknown
}

// Values gives the settings that it chooses.
func (f *Followed) Values(below *Resolved) map[string]any {
	l := map[string]any{}
	c := below.Config
	f.stretch(below, l)
	if f.IterationsFactor > 0 || f.Adapts {
		if n := c.NumDownscales; below.MayChange(StepsFactor, "num_downscales") {
			for n > 0 && f.Smallest>>n < leastStart {
				n--
			}
			l["num_downscales"] = n
		}
	}
	f.chooseSplats(below, l)
	if times := f.Penalty(); times > 1 {
		for name, weight := range map[string]float64{"opacity_reg": c.OpacityReg, "scale_reg": c.ScaleReg} {
			if weight > 0 && below.MayChange(FewPhotos, name) {
				l[name] = weight * times
			}
		}
	}
	return l
}

// stretch makes the schedule IterationsFactor times a power of the number of photos. A block that is trained for its
// photos' share of the steps has that share of the whole capture's.
func (f *Followed) stretch(below *Resolved, l map[string]any) {
	if f.IterationsFactor == 0 {
		return
	}
	photos := int(math.Round(float64(f.Photos) / f.Share))
	steps := max(1, math.Round(f.IterationsFactor*StepsFor(photos)*f.Scaler*f.Share))
	// once from the schedule as it is written: numbers are rounded down
	stretched := below.Written.Scaled(steps / float64(below.Written.Iterations))
	stretched.Iterations = int(steps)
	for i := range Settings {
		if s := &Settings[i]; s.Steps && below.MayChange(StepsFactor, s.Name) {
			l[s.Name] = s.Value(&stretched)
		}
	}
}

// chooseSplats chooses the number of splats to end with, where no number was asked for and refinements make any.
func (f *Followed) chooseSplats(below *Resolved, l map[string]any) {
	c := below.Config
	for name, n := range l { // refinements go by the schedule that was chosen
		if p, isInt := SettingNamed(name).Of(&c).(*int); isInt {
			*p = n.(int)
		}
	}
	if f.SplatsFactor == 0 || c.Splats > 0 || c.Refinements() == 0 {
		return
	}
	splats := f.Splats(f.SplatsFactor)
	if c.MaxSplats > 0 {
		splats = min(splats, c.MaxSplats)
	}
	if c.Strategy == StrategyMCMC && below.MayChange(SplatsFactor, "max_splats") {
		l["max_splats"] = splats // which it never exceeds: memory for more is better spent on pairs
	}
	if f.Ceiling > 0 {
		splats = min(splats, f.Ceiling)
	}
	l["splats"] = splats
}

// Penalty is by how much the penalties of opacity and scale rise. They hold down splats that few photos say anything
// of: their opacity and size are what overfits.
func (f *Followed) Penalty() float64 {
	if f.Photos == 0 || f.Photos >= f.FewPhotos {
		return 1
	}
	share := float64(f.Photos) / float64(f.FewPhotos)
	return min(math.Sqrt(1/share)*math.Pow(max(1, veryFew/share), 1.5), mostPenalty)
}

// The names of the settings of Factors.
const (
	StepsFactor  = "iterations_factor"
	SplatsFactor = "splats_factor"
	FewPhotos    = "few_photos"
)

// MayChange reports whether a factor may change a setting. It never changes what the caller asked for. It changes what
// a file gave only if the factor itself was asked for.
func (r *Resolved) MayChange(factor, name string) bool {
	by := r.ChosenBy(name)
	return by == FromDefault || by == FromFile && r.Chosen(factor)
}
