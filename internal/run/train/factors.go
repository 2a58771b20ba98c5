package train

import (
	"math"
	"reflect"
	"slices"

	"vksplat/pipeline/recipe"
)

// Factors choose settings by the capture.
type Factors = recipe.Factors

// The ranges of Factors. The largest give more splats than any photo has pixels, and more steps than anybody waits for.
var (
	SplatsFactors     = recipe.Range{Most: 100}
	IterationsFactors = recipe.Range{Most: 1e6}
)

// factor is a field of Factors.
type factor struct {
	name    string                       // of its setting
	of      func(f *Factors) any         // pointer to it
	chooses func(s *recipe.Setting) bool // the settings that it changes
	in      recipe.Range
}

var factors = []factor{
	{recipe.StepsFactor, func(f *Factors) any { return &f.IterationsFactor }, isSchedule, IterationsFactors},
	{recipe.SplatsFactor, func(f *Factors) any { return &f.SplatsFactor },
		func(s *recipe.Setting) bool { return s.Name == "splats" || s.Name == "max_splats" }, SplatsFactors},
	{recipe.FewPhotos, func(f *Factors) any { return &f.FewPhotos },
		func(s *recipe.Setting) bool { return s.Name == "opacity_reg" || s.Name == "scale_reg" },
		recipe.Range{Most: math.MaxInt32}},
}

// isSchedule reports whether a setting belongs to the schedule: numbers of steps, and the size of the first photos.
func isSchedule(s *recipe.Setting) bool { return s.Steps || s.Name == "num_downscales" }

func isStepsFactor(f factor) bool { return f.name == recipe.StepsFactor }

func (f *factor) value(of *Factors) reflect.Value { return reflect.ValueOf(f.of(of)).Elem() }

// followsFactor reports whether a factor that is on chooses a setting of c.
func followsFactor(o *Options, s *recipe.Setting, c *recipe.Config) bool {
	mayChange := o.choices.resolved.MayChange
	if s.Name == "num_downscales" && o.choices.adapts && mayChange(recipe.StepsFactor, s.Name) {
		return true
	}
	return slices.ContainsFunc(factors, func(f factor) bool {
		on := !f.value(&o.Factors).IsZero() && (f.name != recipe.SplatsFactor || c.Splats == 0)
		if f.name == recipe.SplatsFactor && s.Name == "splats" { // 0 asks for what follows, whoever gives it
			return on
		}
		return on && f.chooses(s) && mayChange(f.name, s.Name)
	})
}
