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

// Settings are layers: see configure. A preset is a configuration file that is part of the program.

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
	fixed                map[string]any // by the command, whatever was asked for
	// by the run that is resumed; nil: the run begins
	resumed   func(below *recipe.Resolved) map[string]any
	adapts    bool             // the preset follows the capture, even where a number of steps is given
	followed  *recipe.Followed // nil: the capture has not been read
	synthetic bool             // the capture is made for a white background
	asTaken   bool             // photos may be trained on as taken, and undistorting them would lose something
	room      int              // splats that memory has room for, if they are fewer than follow the capture
	limited   *limited         // nil: no time limit has chosen the steps
	resolved  *recipe.Resolved // what came of all; nil: not asked for yet
}

// configure makes Config of all layers, from weak to strong. A new layer is a row here: the origin of its values, and
// the function that gives them.
func (o *Options) configure() {
	c := &o.choices
	if !isResolved(o) && c.resolved == nil {
		c.defaults = o.Config
	}
	scaler, limit := o.StepsScaler, map[string]any(nil)
	if l := c.limited; l != nil {
		scaler, limit = l.scaler, l.values
	}
	derived := recipe.Derived
	if !isResolved(o) {
		derived = nil
	}
	layers := []recipe.Layer{
		{Origin: recipe.FromPreset, Values: recipe.Given(c.preset)},
		{Origin: recipe.FromFile, Values: recipe.Given(c.file)},
		{Origin: recipe.FromCaller, Values: recipe.Given(c.caller)},
		{Origin: recipe.FromTimeLimit, Values: recipe.Given(limit)},
		{Origin: recipe.FromPreset, Values: recipe.OfPreset(c.preset)},
		{Origin: recipe.FromPreset, Values: derived},
		recipe.Stretched(scaler), recipe.Shared(o.stepsShare()),
		{Origin: recipe.FromCommand, Values: recipe.Given(c.fixed)},
		{Origin: recipe.FromCheckpoint, Values: c.resumed},
		{Origin: recipe.FromCapture, Values: c.follow},
		{Origin: recipe.FromCapture, Values: c.white},
		{Origin: recipe.FromCapture, Values: takenAsIs(o)},
		{Origin: recipe.FromCapture, Values: c.fit},
	}
	c.resolved = recipe.Resolve(c.defaults, layers...)
	o.Config = c.resolved.Config
}

// follow gives the settings that follow from photos and points.
func (c *choices) follow(below *recipe.Resolved) map[string]any {
	if c.followed == nil {
		return nil
	}
	f := *c.followed
	if l := c.limited; l != nil {
		f.Scaler, f.SplatsFactor = l.scaler, l.splatsFactor
	}
	return f.Values(below)
}

// white is the background of captures that are made for it, unless one was chosen.
func (c *choices) white(below *recipe.Resolved) map[string]any {
	if !c.synthetic || below.Chosen("background") {
		return nil
	}
	return map[string]any{"background": [3]float32{1, 1, 1}}
}

// takenAsIs trains on photos as they were taken where lenses distort: undistorting them blurs (docs/cameras.md has how
// much that costs).
func takenAsIs(o *Options) func(below *recipe.Resolved) map[string]any {
	return func(below *recipe.Resolved) map[string]any {
		c := &below.Config
		if !o.choices.asTaken || below.Chosen("native_lens") || c.Robust || o.Depth.used() || o.Normal.used() ||
			o.Devices != "" {
			return nil
		}
		return map[string]any{"native_lens": true}
	}
}

// fit limits splats that follow the capture to as many as memory has room for.
func (c *choices) fit(below *recipe.Resolved) map[string]any {
	if c.room == 0 || below.Origin("splats") != recipe.FromCapture || below.Config.Splats <= c.room {
		return nil
	}
	return map[string]any{"splats": c.room}
}

// From says where a setting has its value from.
func (o *Options) From(name string) string {
	if o.choices.followed != nil && o.Factors == (Factors{}) && // done: see Choose
		slices.ContainsFunc(factors, func(f factor) bool { return f.name == underscored(name) }) {
		return recipe.FromCapture.Name
	}
	return o.choices.resolved.Origin(name).Name
}

// BackgroundChosen reports whether the background was chosen, and follows the kind of capture no more.
func (o *Options) BackgroundChosen() bool {
	r := o.choices.resolved
	return r != nil && r.Chosen("background")
}

// Fix gives settings of the recipe values, whatever was asked for.
func (o *Options) Fix(values map[string]any) {
	o.choices.fixed = values
	o.configure()
}

// isResolved reports whether Resolve was called.
func isResolved(o *Options) bool { return o.choices.caller != nil }

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
	if err := read(o, v, config, &c.file); err != nil {
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
	if err := read(o, v, preset, &c.preset); err != nil {
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

// read makes a layer of texts, and sets in o what no stronger layer gave. Those have been read before.
func read(o *Options, v Vocabulary, texts map[string]string, layer *map[string]any) error {
	alone := NewOptions()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := v.Setting(alone, name).Set(texts[name]); err != nil {
			return err
		}
		if o.Asked(name) {
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
