package train

import (
	"embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline/recipe"
	"vksplat/scene/initial"
)

// Settings come, from weak to strong, from the defaults, a preset, the configuration and what the caller gives. A
// preset is a configuration file that is part of the program.

// Presets are the files of presets/.
//
//go:embed presets/*.toml
var Presets embed.FS

// Setting is a value of Options that a text sets.
type Setting interface {
	String() string
	Set(text string) error
}

// Vocabulary is how the caller names settings.
type Vocabulary struct {
	Setting func(o *Options, name string) Setting                    // nil: there is none of that name
	Preset  func(preset string) (texts map[string]string, err error) // by the names of settings
}

// Resolve completes o, which holds the defaults and what was given, with the configuration and the preset, derives the
// rest, and checks all of it.
func (o *Options) Resolve(v Vocabulary, config map[string]string, given func(name string) bool) error {
	for _, name := range []string{"preset", "strategy"} {
		if text, found := config[name]; found && !given(name) {
			if err := v.Setting(o, name).Set(text); err != nil {
				return err
			}
		}
	}
	o.by = func(name string) source {
		switch {
		case given(name):
			return byCaller
		case has(config, name):
			return byFile
		}
		return byPreset
	}
	preset, err := o.presetTexts(v, given, config)
	if err != nil {
		return err
	}
	texts := maps.Clone(preset)
	if texts == nil {
		texts = map[string]string{}
	}
	maps.Copy(texts, config)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if given(name) {
			continue
		}
		if err := v.Setting(o, name).Set(texts[name]); err != nil {
			return err
		}
	}
	o.adapts = has(preset, stepsFactor)
	if !o.changes(stepsFactor, "iterations") {
		o.IterationsFactor = 0
	}
	if err := o.scalePreset(v, preset); err != nil {
		return err
	}
	if err := o.derive(has(preset, "grow-grad2d")); err != nil {
		return err
	}
	return o.Check()
}

func has(texts map[string]string, name string) bool {
	_, found := texts[name]
	return found
}

// defaultPreset is the preset of those who name none.
const defaultPreset = "default"

// formerPreset was another name of the default preset. This version takes it, and the next will not.
const formerPreset = "fast"

// NamePreset returns what a preset is called now. A run that was given a former name says so.
func (o *Options) NamePreset(name string) string {
	if name != formerPreset {
		return name
	}
	o.formerNamed = true
	return defaultPreset
}

// presetTexts returns what lies below flags and file, and sets Preset. A strategy alone means the preset of its name,
// and so does a setting that only the strategy 3dgs has: the values of one strategy make no sense with the other. MCMC
// starts from faint small splats and needs its regularisers.
func (o *Options) presetTexts(v Vocabulary, given func(name string) bool, config map[string]string) (map[string]string,
	error) {
	o.presetBy = "preset"
	if o.Preset == "" {
		o.Preset, o.presetBy = defaultPreset, ""
		switch {
		case o.known("strategy"):
			o.Preset, o.presetBy = o.Config.Strategy, "strategy"
			if !given("strategy") {
				o.presetBy = "config"
			}
		case o.grows(config):
			o.Preset = recipe.Strategy3DGS
		}
	}
	preset, err := v.Preset(o.Preset)
	if err != nil {
		return nil, err
	}
	if s := preset["strategy"]; o.known("strategy") && s != o.Config.Strategy {
		return nil, fault.Usagef("leave out one of the two", "preset %s has the strategy %s, and %s is asked for",
			o.Preset, s, o.Config.Strategy)
	}
	return preset, nil
}

// grows reports whether a setting of the strategy 3dgs is asked for, and not to be off.
func (o *Options) grows(config map[string]string) bool {
	return slices.ContainsFunc(recipe.Settings, func(s recipe.Setting) bool {
		name := cli.Dashed(s.Name)
		if !slices.Contains(s.Needs, recipe.Need{Setting: "strategy", Word: recipe.Strategy3DGS}) || !o.known(name) {
			return false
		}
		text, inFile := config[name]
		if !inFile {
			text = fmt.Sprint(reflect.ValueOf(s.Of(&o.Config)).Elem())
		}
		return text != "0" && text != "false"
	})
}

// scalePreset multiplies the numbers of steps that come from a preset by what the number of iterations given is of the
// preset's own, where that has one: its recipe is meant as a whole.
func (o *Options) scalePreset(v Vocabulary, preset map[string]string) error {
	if !has(preset, "iterations") || !o.known("iterations") || o.Config.Iterations < 1 { // which Check refuses
		return nil
	}
	own, err := strconv.Atoi(preset["iterations"])
	if err != nil {
		return err
	}
	scaled := *o
	scaled.Config = o.Config.Scaled(float64(o.Config.Iterations) / float64(own))
	for _, name := range slices.Sorted(maps.Keys(preset)) {
		if o.known(name) {
			continue
		}
		if err := v.Setting(o, name).Set(v.Setting(&scaled, name).String()); err != nil {
			return err
		}
	}
	return nil
}

// mostScaled is the largest factor of steps.
const mostScaled = 1000

// derive sets what follows from other settings, unless it was given, and applies the factor of steps.
func (o *Options) derive(presetGrad bool) error {
	c := &o.Config
	o.BackgroundGiven = o.known("background")
	o.Eval = o.Eval || o.TestList != ""
	if c.AbsGrad && !presetGrad && !o.known("grow-grad2d") {
		c.GrowGrad2D = recipe.AbsGradThreshold
	}
	mcmc := c.Strategy == recipe.StrategyMCMC && c.Splats > 0 // never exceeds Splats: no memory for more
	if c.MaxSplats > 0 && (mcmc || c.Splats > c.MaxSplats) && !o.known("max-splats") {
		c.MaxSplats = c.Splats
	}
	if f := o.StepsScaler; !(f > 0) || f > mostScaled {
		return fault.Usagef(fmt.Sprintf("give a factor above 0 and at most %d, as in 0.25", mostScaled),
			"%s: %g is no factor of steps", fault.Named("steps-scaler"), f)
	}
	o.unscaled = *c
	o.unscaledAt = stepsAt{slices.Clone(o.EvalAt), slices.Clone(o.Checkpoints.SaveAt)}
	if o.StepsScaler != 1 {
		*c = c.Scaled(o.StepsScaler)
		o.EvalAt.Scale(o.StepsScaler)
		o.Checkpoints.SaveAt.Scale(o.StepsScaler)
	}
	return nil
}

// InitFlag says what the first splats are made from, in the words of initial.ParseInit.
type InitFlag struct{ Of *initial.Options }

// Type names the value.
func (f *InitFlag) Type() string { return "KIND" }

func (f *InitFlag) String() string {
	switch {
	case f.Of == nil || f.Of.Kind == initial.InitAuto:
		return "auto"
	case f.Of.Kind == initial.InitPLY:
		return initial.InitPLY + ":" + f.Of.File
	}
	return f.Of.Kind
}

// Set parses points, random, FILE or ply:FILE.
func (f *InitFlag) Set(s string) error {
	kind, file, err := initial.ParseInit(s)
	if err != nil {
		return fault.Usagef("give points, random or a file, as in ply:FILE", "%q is no way to begin", s)
	}
	f.Of.Kind, f.Of.File = kind, file
	return nil
}
