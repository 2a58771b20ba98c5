package suite

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/scene/metric"
)

// A suite is a TOML file: which captures are trained by which recipes with which seeds. Its presets are such files,
// too, and part of the program.

//go:embed suites/*.toml
var suitePresets embed.FS

// suiteTOML is the file as it is written.
type suiteTOML struct {
	Out      string   `toml:"out"`      // folder of the runs
	Preset   string   `toml:"preset"`   // captures to begin with
	Data     string   `toml:"data"`     // folder that captures without a path of their own lie in
	Source   string   `toml:"source"`   // of the photos: one of Sources
	Only     []string `toml:"only"`     // captures; empty: all
	Seeds    []int64  `toml:"seeds"`    // from 0 up; a decoder to uint64 takes -1 for 2^64 - 1
	Protocol string   `toml:"protocol"` // of eval
	Correct  string   `toml:"color_correct"`
	Weights  string   `toml:"lpips_weights"` // file

	Settings map[string]toml.Primitive            `toml:"settings"` // of every run
	Recipe   map[string]map[string]toml.Primitive `toml:"recipe"`
	Capture  map[string]map[string]toml.Primitive `toml:"capture"`
	Mean     map[string][]string                  `toml:"mean"` // groups of captures that belong together in tables
	Sources  map[string]map[string]toml.Primitive `toml:"sources"`
}

// Plan is what a suite asks for, checked.
type Plan struct {
	training Training
	file     string
	out      string
	preset   string
	source   string // of the photos; "" where there is but one
	protocol string
	correct  string
	weights  string // file of LPIPS's, "" for none
	// SHA-256 of that file, "" for none; survey finds it.
	weightsHash string

	seeds    []uint64
	Captures []suiteCapture
	recipes  []suiteRecipe
	Means    []suiteMean
	settings map[string]string            // of every run
	sources  map[string]map[string]string // by name
}

type suiteCapture struct {
	name, path string
	settings   map[string]string
}

type suiteRecipe struct {
	name     string
	settings map[string]string
}

// suiteMean is a group of captures over which results are averaged.
type suiteMean struct {
	Name     string
	Captures []string
}

// pathKey is the key of a capture's table that is no setting.
const pathKey = "path"

// sourceReleased is the source of photos that somebody has reduced: they must be there.
const sourceReleased = "released"

// LeavesOut are settings that the suite decides.
var LeavesOut = map[string]string{"eval": "every run is measured", "seed": "give seeds = [...]"}

// suiteSeeds are those of a suite that names none.
var suiteSeeds = []uint64{42, 43, 44}

// pathName are the names among those of folders that need no quotes in a shell.
var pathName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}$`)

// Read reads and checks a file.
func Read(file string, training Training) (*Plan, error) {
	text, err := training.Text(file, suiteHint(file))
	if err != nil {
		return nil, err
	}
	p := &Plan{file: file, training: training, protocol: evaluate.ProtocolGsplat, correct: metric.ColorAffine,
		settings: map[string]string{}, sources: map[string]map[string]string{}}
	var own suiteTOML
	md, err := toml.Decode(text, &own)
	if err != nil {
		return nil, training.Wrong(file, err)
	}
	data := ""
	if own.Data != "" {
		data = besideFile(file, own.Data)
	}
	if own.Preset != "" {
		if err := p.addPreset(own.Preset, data); err != nil {
			return nil, err
		}
	}
	if err := p.take(&own, md, data); err != nil {
		return nil, err
	}
	return p, p.finish(&own)
}

// suiteHint says what should be given in the place of what is no file of a suite.
func suiteHint(given string) string {
	switch {
	case slices.Contains(PresetNames(), given):
		return fmt.Sprintf("%s is a preset: write a file with preset = \"%s\", data = \"/path\" and out = \"runs\"; "+
			"docs/eval.md shows one", given, given)
	case output.IsFolder(given):
		return "name a TOML file that says where captures are and how they are trained; docs/eval.md shows one; one " +
			"capture is trained by vksplat train"
	}
	return "name the TOML file of a suite; docs/eval.md shows one"
}

// besideFile returns a path that stands in a file: it is relative to the file's folder.
func besideFile(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// wrong is an error in the file.
func (p *Plan) wrong(hint, format string, args ...any) error {
	return fault.Usagef(hint, "check %s: %w", p.file, fmt.Errorf(format, args...))
}

// PresetNames lists the presets.
func PresetNames() (names []string) {
	entries, err := suitePresets.ReadDir("suites")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// addPreset begins with what a preset says of the captures in the folder data.
func (p *Plan) addPreset(name, data string) error {
	names := PresetNames()
	switch {
	case !slices.Contains(names, name):
		return p.wrong(cli.DidYouMean(name, names, "give "+wording.Or(names)), "unknown preset %q of a suite", name)
	case data == "":
		return p.wrong("add: data = \"/path\"", "preset %s: data does not say which folder the captures are in", name)
	}
	text, err := suitePresets.ReadFile(path.Join("suites", name+".toml"))
	if err != nil {
		return err
	}
	var base suiteTOML
	md, err := toml.Decode(string(text), &base)
	if err != nil {
		return err
	}
	p.preset = name
	return p.take(&base, md, data)
}

// take adds what a file or a preset says. Captures without a path are in the folder data.
func (p *Plan) take(t *suiteTOML, md toml.MetaData, data string) error {
	more, err := p.settingsOf(md, "settings", t.Settings)
	if err != nil {
		return err
	}
	maps.Copy(p.settings, more)
	for _, name := range inOrder(md, "capture", t.Capture) {
		if err := p.takeCapture(md, name, t.Capture[name], data); err != nil {
			return err
		}
	}
	for _, name := range inOrder(md, "recipe", t.Recipe) {
		values, err := p.settingsOf(md, "recipe."+name, t.Recipe[name])
		if err == nil {
			err = p.checkName("recipe", name)
		}
		if err != nil {
			return err
		}
		p.recipes = append(p.recipes, suiteRecipe{name, values})
	}
	for _, name := range inOrder(md, "mean", t.Mean) {
		p.Means = append(p.Means, suiteMean{name, t.Mean[name]})
	}
	for _, name := range inOrder(md, "sources", t.Sources) {
		if p.sources[name], err = p.settingsOf(md, "sources."+name, t.Sources[name]); err != nil {
			return err
		}
	}
	if t.Weights != "" {
		p.weights = besideFile(p.file, t.Weights)
	}
	p.source, p.protocol, p.correct = cmp.Or(t.Source, p.source), cmp.Or(t.Protocol, p.protocol),
		cmp.Or(t.Correct, p.correct)
	if unknown := md.Undecoded(); len(unknown) > 0 {
		return p.wrong("docs/eval.md lists all keys", "unknown key %s", unknown[0])
	}
	return nil
}

// takeCapture adds a capture, or changes one of the preset.
func (p *Plan) takeCapture(md toml.MetaData, name string, table map[string]toml.Primitive, data string) error {
	if err := p.checkName("capture", name); err != nil {
		return err
	}
	at := slices.IndexFunc(p.Captures, func(c suiteCapture) bool { return c.name == name })
	if at < 0 {
		at = len(p.Captures)
		p.Captures = append(p.Captures, suiteCapture{name: name, settings: map[string]string{}})
	}
	c := &p.Captures[at]
	if value, found := table[pathKey]; found {
		var dir string
		if err := md.PrimitiveDecode(value, &dir); err != nil || dir == "" {
			return p.wrong("as in: path = \"/data/garden\"", "capture.%s: path is not text", name)
		}
		c.path = besideFile(p.file, dir)
		delete(table, pathKey)
	}
	if c.path == "" && data != "" {
		c.path = filepath.Join(data, name)
	}
	if c.path == "" {
		return p.wrong("add: path = \"/data/"+name+"\", or data = \"/data\" for all captures",
			"capture.%s: path does not say where it is", name)
	}
	values, err := p.settingsOf(md, "capture."+name, table)
	maps.Copy(c.settings, values)
	return err
}

// checkName refuses names that are no names of folders.
func (p *Plan) checkName(what, name string) error {
	if why, hint := wording.BadName(name); why != "" {
		return p.wrong(hint, "name of a %s: %s", what, why)
	}
	if !pathName.MatchString(name) {
		return p.wrong("use up to 100 letters, digits and signs _ . + -", "%s %q: folders are named after it", what,
			name)
	}
	return nil
}

// inOrder returns the keys of a table as the file has them.
func inOrder[T any](md toml.MetaData, table string, values map[string]T) (names []string) {
	for _, key := range md.Keys() {
		if len(key) >= 2 && key[0] == table && !slices.Contains(names, key[1]) {
			if _, found := values[key[1]]; found {
				names = append(names, key[1])
			}
		}
	}
	return names
}

// settingsOf checks a table of train's settings.
func (p *Plan) settingsOf(md toml.MetaData, where string, values map[string]toml.Primitive) (map[string]string, error) {
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		var data any
		if err := md.PrimitiveDecode(values[key], &data); err != nil {
			return nil, p.wrong("TOML has lines like: iterations = 30000", "%s: key %s: %w", where, key, err)
		}
		name, text, err := p.training.Setting(key, data, out)
		if why, decided := LeavesOut[name]; decided {
			return nil, p.wrong("leave it out: "+why, "%s: key %s is the suite's", where, key)
		}
		if err != nil {
			return nil, p.wrong(fault.Hint(err), "%s: %w", where, err)
		}
		out[name] = text
	}
	return out, nil
}

// Training is what a suite knows of train's settings. The command that has their table fills it in.
type Training struct {
	// text reads a TOML file; hint says which is meant. wrong says where in it something is wrong.
	Text  func(file, hint string) (string, error)
	Wrong func(file string, err error) error
	// setting returns the name of the setting that a key means and the text of its value. It is an error if taken has
	// the name already.
	Setting func(key string, data any, taken map[string]string) (name, text string, err error)
	// flags adds the settings to flags of train, in their order, and checks all of them as train does.
	Flags func(flags []string, settings map[string]string) ([]string, error)
}

// takeSeeds takes the list of seeds; nil is the usual one.
func (p *Plan) takeSeeds(list []int64) error {
	switch {
	case list == nil:
		p.seeds = suiteSeeds
	case len(list) == 0:
		return p.wrong("give one or more, as in seeds = [42]", "seeds: the list is empty")
	}
	for _, seed := range list {
		switch {
		case seed < 0:
			return p.wrong("give numbers from 0 up, as in seeds = [42]", "seeds: %d is below 0", seed)
		case slices.Contains(p.seeds, uint64(seed)):
			return p.wrong("give each seed once", "seeds: %d occurs twice", seed)
		}
		p.seeds = append(p.seeds, uint64(seed))
	}
	return nil
}

// finish takes what the file chooses, and checks the whole.
func (p *Plan) finish(own *suiteTOML) error {
	if own.Out == "" {
		return p.wrong("add: out = \"runs\"", "out does not say which folder the runs go to")
	}
	p.out = besideFile(p.file, own.Out)
	if err := p.takeSeeds(own.Seeds); err != nil {
		return err
	}
	if !slices.Contains(evaluate.ProtocolNames(), p.protocol) {
		return p.wrong("give "+wording.Or(evaluate.ProtocolNames()), "protocol: there is no %q", p.protocol)
	}
	if ways := []string{metric.ColorAffine, metric.ColorQuadratic, evaluate.ColorNone}; !slices.Contains(ways,
		p.correct) {
		return p.wrong("give "+wording.Or(ways), "color_correct: there is no %q", p.correct)
	}
	if names := slices.Sorted(maps.Keys(p.sources)); p.source != "" && !slices.Contains(names, p.source) {
		return p.wrong("give "+wording.Or(names), "source: there is no %q", p.source)
	}
	if len(p.Captures) == 0 {
		return p.wrong("add [capture.NAME] with a path, or preset and data", "there is no capture")
	}
	if len(p.recipes) == 0 {
		p.recipes = []suiteRecipe{{"default", map[string]string{}}}
	}
	for _, m := range p.Means {
		for _, name := range m.Captures {
			if !p.has(name) {
				return p.wrong("name captures of the suite", "mean %q: there is no capture %s", m.Name, name)
			}
		}
	}
	return p.choose(own.Only)
}

// choose leaves the captures of the given names, unless none is given.
func (p *Plan) choose(only []string) error {
	for _, name := range only {
		if !p.has(name) {
			return p.wrong("name captures of the suite", "only: there is no capture %s", name)
		}
	}
	if len(only) == 0 {
		return nil
	}
	p.Captures = slices.DeleteFunc(p.Captures, func(c suiteCapture) bool { return !slices.Contains(only, c.name) })
	p.Means = slices.DeleteFunc(p.Means, func(m suiteMean) bool {
		return slices.ContainsFunc(m.Captures, func(name string) bool { return !slices.Contains(only, name) })
	})
	return nil
}

func (p *Plan) has(capture string) bool {
	return slices.ContainsFunc(p.Captures, func(c suiteCapture) bool { return c.name == capture })
}
