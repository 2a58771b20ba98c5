package train

import (
	"embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline/recipe"
	"vksplat/scene/initial"
)

// Settings come, from weak to strong, from the defaults, a preset, the configuration, what the caller gives, the run
// that is resumed, the capture and the time limit: see configure. A preset is a configuration file that is part of the
// program.

// Presets are the files of presets/.
//
//go:embed presets/*.toml
var Presets embed.FS

// PresetNames lists them.
func PresetNames() (names []string) {
	entries, _ := Presets.ReadDir("presets") // part of the program
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

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

// choices are the inputs of the layers of a run's configuration.
type choices struct {
	defaults             recipe.Config // what the options held, if Resolve was not called
	preset, file, caller map[string]any
	fixed                map[string]any   // by the command, whatever was asked for
	resumed              recipe.Source    // nil: the run begins
	adapts               bool             // the preset follows the capture, even where a number of steps is given
	followed             *recipe.Followed // nil: the capture has not been read
	synthetic            bool             // the capture is made for a white background
	room                 int              // splats that memory has room for, if they are fewer than follow the capture
	limited              *limited         // nil: no time limit has chosen the steps
	resolved             *recipe.Resolved // what came of all; nil: not asked for yet
}

// configure makes Config what all layers give, from weak to strong.
func (o *Options) configure() {
	c := &o.choices
	if !o.isResolved() && c.resolved == nil {
		c.defaults = o.Config
	}
	scaler, followed, limit := o.StepsScaler, c.followed, map[string]any(nil)
	if l := c.limited; l != nil {
		scaler, limit = l.scaler, l.values
		if followed != nil {
			f := *followed
			f.Scaler, f.SplatsFactor = l.scaler, l.splatsFactor
			followed = &f
		}
	}
	layers := []recipe.Source{
		recipe.Given(recipe.FromPreset, c.preset), recipe.Given(recipe.FromFile, c.file),
		recipe.Given(recipe.FromCaller, c.caller), recipe.Given(recipe.FromTimeLimit, limit),
	}
	if o.isResolved() {
		layers = append(layers, recipe.OfPreset(c.preset), recipe.Derived)
	}
	layers = append(layers, recipe.Stretched(scaler))
	if share := o.stepsShare(); share != 1 {
		layers = append(layers, recipe.Shared(share))
	}
	layers = append(layers, recipe.Given(recipe.FromDefault, c.fixed), c.resumed)
	if followed != nil {
		layers = append(layers, followed.Layer)
	}
	if c.synthetic {
		layers = append(layers, white)
	}
	c.resolved = recipe.Resolve(c.defaults, append(layers, c.fit)...)
	o.Config = c.resolved.Config
}

// fit is as many splats as memory has room for, where they follow the capture.
func (c *choices) fit(below *recipe.Resolved) recipe.Layer {
	if c.room == 0 || below.Origin("splats") != recipe.FromCapture || below.Config.Splats <= c.room {
		return recipe.Layer{}
	}
	return recipe.Layer{Origin: recipe.FromCapture, Values: map[string]any{"splats": c.room}}
}

// BackgroundChosen reports whether the background was chosen, and follows the kind of capture no more.
func (o *Options) BackgroundChosen() bool {
	r := o.choices.resolved
	return r != nil && isChosen(r.Origin("background"))
}

func isChosen(by recipe.Origin) bool { return by > recipe.FromPreset && by < recipe.FromCapture }

// white is the background of captures that are made for it, unless one was chosen.
func white(below *recipe.Resolved) recipe.Layer {
	if isChosen(below.Origin("background")) {
		return recipe.Layer{}
	}
	return recipe.Layer{Origin: recipe.FromCapture, Values: map[string]any{"background": [3]float32{1, 1, 1}}}
}

// Fix gives settings of the recipe values, whatever was asked for.
func (o *Options) Fix(values map[string]any) {
	o.choices.fixed = values
	o.configure()
}

// isResolved reports whether Resolve was called.
func (o *Options) isResolved() bool { return o.choices.caller != nil }

// Given reports whether the caller gave a setting.
func (o *Options) Given(name string) bool { return has(o.choices.caller, underscored(name)) }

// Asked reports whether the caller or the file gave a setting.
func (o *Options) Asked(name string) bool {
	return o.Given(name) || has(o.choices.file, underscored(name))
}

// WholeSource among the names that are given says that Load is the caller's choice as a whole: a run that is resumed
// takes over nothing of it.
const WholeSource = "source"

// Resolve completes o, which holds the defaults and what was given, with the configuration and the preset, derives the
// rest, and checks all of it. given are the names of settings.
func (o *Options) Resolve(v Vocabulary, config map[string]string, given []string) error {
	c := &o.choices
	c.defaults, c.caller = o.Config, valuesOf(&o.Config, given)
	if err := read(o, v, config, &c.file, o.Given); err != nil {
		return err
	}
	o.choosePreset()
	preset, err := v.Preset(o.Preset)
	if err != nil {
		return err
	}
	if s := preset["strategy"]; o.Asked("strategy") && s != o.Config.Strategy {
		return fault.Usagef("leave out one of the two", "preset %s has the strategy %s, but %s was requested", o.Preset,
			s, o.Config.Strategy)
	}
	if err := read(o, v, preset, &c.preset, o.Asked); err != nil {
		return err
	}
	if f := o.StepsScaler; !(f > 0) || f > mostScaled {
		return fault.Usagef(fmt.Sprintf("give a factor above 0 and at most %d, as in 0.25", mostScaled),
			"%s: %g is not a factor of steps", fault.Named("steps-scaler"), f)
	}
	c.adapts = has(preset, cli.Dashed(recipe.StepsFactor))
	o.configure()
	if !c.resolved.MayChange(recipe.StepsFactor, "iterations") {
		o.IterationsFactor = 0
	}
	o.Eval = o.Eval || o.TestList != ""
	o.unscaledAt = stepsAt{slices.Clone(o.EvalAt), slices.Clone(o.Checkpoints.SaveAt)}
	if o.StepsScaler != 1 {
		o.EvalAt.Scale(o.StepsScaler)
		o.Checkpoints.SaveAt.Scale(o.StepsScaler)
	}
	return o.Check()
}

// read makes a layer of texts, and sets in o what is no setting of the recipe and not given by a stronger layer.
func read(o *Options, v Vocabulary, texts map[string]string, layer *map[string]any,
	stronger func(name string) bool) error {
	alone := NewOptions()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := v.Setting(alone, name).Set(texts[name]); err != nil {
			return err
		}
		if stronger(name) {
			continue
		}
		if err := v.Setting(o, name).Set(texts[name]); err != nil {
			return err
		}
	}
	*layer = valuesOf(&alone.Config, slices.Collect(maps.Keys(texts)))
	return nil
}

// valuesOf returns what settings of these names have in c, nil for those that are none of the recipe.
func valuesOf(c *recipe.Config, names []string) map[string]any {
	values := map[string]any{}
	for _, name := range names {
		name = underscored(name)
		values[name] = nil
		if s := recipe.SettingNamed(name); s != nil {
			values[name] = s.Value(c)
		}
	}
	return values
}

// underscored is a setting's name as the recipe has it.
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

func has[T any](values map[string]T, name string) bool {
	_, found := values[name]
	return found
}

// defaultPreset is the preset of those who name none.
const defaultPreset = "default"

// choosePreset sets Preset, unless one is named. A strategy alone means the preset of its name, and so does a setting
// that only the strategy 3dgs has: the values of one strategy make no sense with the other. MCMC starts from faint
// small splats and needs its regularisers.
func (o *Options) choosePreset() {
	switch {
	case o.Preset != "":
	case o.Asked("strategy"):
		o.Preset = o.Config.Strategy
	case slices.ContainsFunc(recipe.Settings, func(s recipe.Setting) bool { return grows(o, s) }):
		o.Preset = recipe.Strategy3DGS
	default:
		o.Preset = defaultPreset
	}
}

// grows reports whether a setting that only the strategy 3dgs has is asked for, and not to be off.
func grows(o *Options, s recipe.Setting) bool {
	value, found := o.choices.file[s.Name]
	if !found {
		value, found = o.choices.caller[s.Name]
	}
	return found && !reflect.ValueOf(value).IsZero() &&
		slices.Contains(s.Needs, recipe.Need{Setting: "strategy", Word: recipe.Strategy3DGS})
}

// presetBy names what chose the preset: preset, strategy or config; "": nothing did.
func (o *Options) presetBy() string {
	switch {
	case o.Asked("preset"):
		return "preset"
	case o.Given("strategy"):
		return "strategy"
	case o.Asked("strategy"):
		return "config"
	}
	return ""
}

// mostScaled is the largest factor of steps.
const mostScaled = 1000

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
		return fault.Usagef("give points, random or a file, as in ply:FILE", "%q is not a source of initial splats", s)
	}
	f.Of.Kind, f.Of.File = kind, file
	return nil
}
