package train

import (
	"math"
	"reflect"
	"slices"

	"vksplat/internal/cli"
	"vksplat/pipeline/recipe"
)

// Factors choose settings by the capture, see followCapture. 0: it does not.
type Factors struct {
	IterationsFactor float64 `json:"iterations_factor"` // steps
	SplatsFactor     float64 `json:"splats_factor"`     // splats to end with
	FewPhotos        int     `json:"few_photos"`        // penalties, for captures of fewer photos
}

// The ranges of Factors. The largest give more splats than any photo has pixels, and more steps than anybody waits for.
var (
	SplatsFactors     = recipe.Range{Most: 100}
	IterationsFactors = recipe.Range{Most: 1e6}
)

// The names of the settings of Factors.
const (
	stepsFactor  = "iterations-factor"
	splatsFactor = "splats-factor"
	fewPhotos    = "few-photos"
)

// factor is a field of Factors.
type factor struct {
	name    string                       // of its setting, with dashes
	of      func(f *Factors) any         // pointer to it
	chooses func(s *recipe.Setting) bool // the settings that it changes
	in      recipe.Range
}

var factors = []factor{
	{stepsFactor, func(f *Factors) any { return &f.IterationsFactor }, isSchedule, IterationsFactors},
	{splatsFactor, func(f *Factors) any { return &f.SplatsFactor },
		func(s *recipe.Setting) bool { return s.Name == "splats" || s.Name == "max_splats" }, SplatsFactors},
	{fewPhotos, func(f *Factors) any { return &f.FewPhotos },
		func(s *recipe.Setting) bool { return s.Name == "opacity_reg" || s.Name == "scale_reg" },
		recipe.Range{Most: math.MaxInt32}},
}

// isSchedule reports whether a setting belongs to the schedule: numbers of steps, and the size of the first photos.
func isSchedule(s *recipe.Setting) bool { return s.Steps || s.Name == "num_downscales" }

// factorNamed returns the factor of a setting with that name.
func factorNamed(name string) factor {
	return factors[slices.IndexFunc(factors, func(f factor) bool { return f.name == name })]
}

func (f *factor) value(of *Factors) reflect.Value { return reflect.ValueOf(f.of(of)).Elem() }

// source is who chose the value of a setting, from weak to strong.
type source int

const (
	byPreset source = iota // or by default
	byFile
	byCaller
)

// known reports whether the caller or the file chose the value of a setting.
func (o *Options) known(name string) bool { return o.by != nil && o.by(name) > byPreset }

// changes reports whether a factor may change a setting. A factor never changes what the caller gave. It changes what a
// file gave only if the factor itself comes from the file or the caller.
func (o *Options) changes(factor, name string) bool {
	if o.by == nil {
		return true
	}
	return o.by(name) == byPreset || o.by(name) == byFile && o.by(factor) > byPreset
}

// followed reports whether a factor that is on chooses a setting of c.
func (o *Options) followed(s *recipe.Setting, c *recipe.Config) bool {
	name := cli.Dashed(s.Name)
	if s.Name == "num_downscales" && o.adapts && o.changes(stepsFactor, name) {
		return true
	}
	return slices.ContainsFunc(factors, func(f factor) bool {
		on := !f.value(&o.Factors).IsZero() && (f.name != splatsFactor || c.Splats == 0)
		if f.name == splatsFactor && s.Name == "splats" { // 0 asks for what follows the capture, whoever gives it
			return on
		}
		return on && f.chooses(s) && o.changes(f.name, name)
	})
}
