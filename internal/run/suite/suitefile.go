package suite

import (
	"embed"
	"fmt"
	"io/fs"
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

// file is a suite as it is written.
type file struct {
	Out      string   `toml:"out"`      // folder of the runs
	Preset   string   `toml:"preset"`   // captures to begin with
	Data     string   `toml:"data"`     // folder that captures without a path of their own lie in
	Source   string   `toml:"source"`   // of the photos: one of Sources; "" where there is but one
	Only     []string `toml:"only"`     // captures; empty: all
	Seeds    []int64  `toml:"seeds"`    // from 0 up; a decoder to uint64 takes -1 for 2^64 - 1
	Protocol string   `toml:"protocol"` // of eval
	Correct  string   `toml:"color_correct"`
	Weights  string   `toml:"lpips_weights"` // file

	Settings map[string]any            `toml:"settings"` // of every run
	Recipe   map[string]map[string]any `toml:"recipe"`
	Capture  map[string]map[string]any `toml:"capture"`
	Mean     map[string][]string       `toml:"mean"` // groups of captures that belong together in tables
	Sources  map[string]map[string]any `toml:"sources"`
}

// Plan is a checked suite.
type Plan struct {
	file        // paths in it are relative to this program's folder
	name        string
	training    Training
	weightsHash string // SHA-256 of the file of LPIPS's weights, "" for none; survey finds it

	Captures []entry
	recipes  []entry
	Means    []suiteMean
	settings map[string]string            // of every run
	sources  map[string]map[string]string // by name
}

// entry is a capture or a recipe.
type entry struct {
	name, path string
	settings   map[string]string
}

// suiteMean is a group of captures over which results are averaged.
type suiteMean struct {
	Name     string
	Captures []string
}

// pathKey is the key of a capture's table that is no setting.
const pathKey = "path"

// sourceReleased is the source of photos that were released in reduced size: they must be there.
const sourceReleased = "released"

// LeavesOut are settings that the suite decides.
var LeavesOut = map[string]string{"eval": "every run is measured", "seed": "give seeds = [...]"}

// pathName are the names among those of folders that need no quotes in a shell.
var pathName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}$`)

// Read reads and checks a file.
func Read(name string, training Training) (*Plan, error) {
	text, err := training.Text(name, suiteHint(name))
	if err != nil {
		return nil, err
	}
	var own file
	if _, err := toml.Decode(text, &own); err != nil {
		return nil, training.Wrong(name, err)
	}
	p := &Plan{name: name, training: training, settings: map[string]string{}, sources: map[string]map[string]string{},
		file: file{Data: own.Data, Seeds: []int64{42, 43, 44}, Protocol: evaluate.ProtocolGsplat,
			Correct: metric.ColorAffine}}
	if own.Preset != "" {
		base, err := p.presetText(own.Preset)
		if err == nil {
			err = p.add(base)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := p.add(text); err != nil {
		return nil, err
	}
	return p, p.finish()
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

// beside returns a path that stands in the file: it is relative to the file's folder.
func (p *Plan) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(p.name), path)
}

// wrong is an error in the file.
func (p *Plan) wrong(hint, format string, args ...any) error {
	return fault.Usagef(hint, "check %s: %w", p.name, fmt.Errorf(format, args...))
}

// PresetNames lists the presets.
func PresetNames() (names []string) {
	files, _ := fs.Glob(suitePresets, "suites/*.toml") // the pattern is a good one
	for _, file := range files {
		names = append(names, strings.TrimSuffix(path.Base(file), ".toml"))
	}
	return names
}

// presetText is the file of a preset.
func (p *Plan) presetText(name string) (string, error) {
	names := PresetNames()
	switch {
	case !slices.Contains(names, name):
		return "", p.wrong(cli.DidYouMean(name, names, "give "+wording.Or(names)), "unknown preset %q of a suite", name)
	case p.Data == "":
		return "", p.wrong("add: data = \"/path\"", "preset %s: data does not say which folder the captures are in",
			name)
	}
	text, err := suitePresets.ReadFile(path.Join("suites", name+".toml"))
	return string(text), err
}

// add adds what a file or a preset says.
func (p *Plan) add(text string) error {
	p.Settings, p.Recipe, p.Capture, p.Mean, p.Sources = nil, nil, nil, nil, nil // those of a preset were added
	md, err := toml.Decode(text, &p.file)
	if err != nil {
		return err
	}
	more, err := p.settingsOf("settings", p.Settings)
	if err != nil {
		return err
	}
	maps.Copy(p.settings, more)
	for _, name := range inOrder(md, "capture", p.Capture) {
		if err := p.addCapture(name, p.Capture[name]); err != nil {
			return err
		}
	}
	for _, name := range inOrder(md, "recipe", p.Recipe) {
		values, err := p.settingsOf("recipe."+name, p.Recipe[name])
		if err == nil {
			err = p.checkName("recipe", name)
		}
		if err != nil {
			return err
		}
		p.recipes = append(p.recipes, entry{name: name, settings: values})
	}
	for _, name := range inOrder(md, "mean", p.Mean) {
		p.Means = append(p.Means, suiteMean{name, p.Mean[name]})
	}
	for _, name := range inOrder(md, "sources", p.Sources) {
		if p.sources[name], err = p.settingsOf("sources."+name, p.Sources[name]); err != nil {
			return err
		}
	}
	if unknown := md.Undecoded(); len(unknown) > 0 {
		return p.wrong("docs/eval.md lists all keys", "unknown key %s", unknown[0])
	}
	return nil
}

// addCapture adds a capture, or changes one of the preset.
func (p *Plan) addCapture(name string, table map[string]any) error {
	if err := p.checkName("capture", name); err != nil {
		return err
	}
	c := p.capture(name)
	if c == nil {
		p.Captures = append(p.Captures, entry{name: name, settings: map[string]string{}})
		c = &p.Captures[len(p.Captures)-1]
	}
	if value, found := table[pathKey]; found {
		if c.path, _ = value.(string); c.path == "" {
			return p.wrong("as in: path = \"/data/garden\"", "capture.%s: path is not text", name)
		}
		c.path = p.beside(c.path)
		delete(table, pathKey)
	}
	if c.path == "" && p.Data != "" {
		c.path = filepath.Join(p.beside(p.Data), name)
	}
	if c.path == "" {
		return p.wrong("add: path = \"/data/"+name+"\", or data = \"/data\" for all captures",
			"capture.%s: path does not say where it is", name)
	}
	values, err := p.settingsOf("capture."+name, table)
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
func (p *Plan) settingsOf(where string, values map[string]any) (map[string]string, error) {
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name, text, err := p.training.Setting(key, values[key], out)
		if why, decided := LeavesOut[name]; decided {
			return nil, p.wrong("leave it out: "+why, "%s: key %s belongs to the suite", where, key)
		}
		if err != nil {
			return nil, p.wrong(fault.Hint(err), "%s: %w", where, err)
		}
		out[name] = text
	}
	return out, nil
}

// Training gives a suite access to train's settings. The command that has their table fills it in.
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

// finish checks the whole.
func (p *Plan) finish() error {
	if p.Out == "" {
		return p.wrong("add: out = \"runs\"", "out does not say which folder the runs go to")
	}
	p.Out, p.Weights = p.beside(p.Out), p.beside(p.Weights)
	if len(p.Seeds) == 0 {
		return p.wrong("give one or more, as in seeds = [42]", "seeds: the list is empty")
	}
	for i, seed := range p.Seeds {
		switch {
		case seed < 0:
			return p.wrong("give numbers from 0 up, as in seeds = [42]", "seeds: %d is below 0", seed)
		case slices.Contains(p.Seeds[:i], seed):
			return p.wrong("give each seed once", "seeds: %d occurs twice", seed)
		}
	}
	for _, c := range []struct {
		key, value string
		words      []string
	}{{"protocol", p.Protocol, evaluate.ProtocolNames()},
		{"color_correct", p.Correct, []string{metric.ColorAffine, metric.ColorQuadratic, evaluate.ColorNone}},
		{"source", p.Source, slices.Sorted(maps.Keys(p.sources))}} {
		if !slices.Contains(c.words, c.value) && (c.key != "source" || c.value != "") {
			return p.wrong("give "+wording.Or(c.words), "%s: there is no %q", c.key, c.value)
		}
	}
	if len(p.Captures) == 0 {
		return p.wrong("add [capture.NAME] with a path, or preset and data", "there is no capture")
	}
	if len(p.recipes) == 0 {
		p.recipes = []entry{{name: "default"}}
	}
	for _, m := range p.Means {
		if err := p.known(fmt.Sprintf("mean %q", m.Name), m.Captures); err != nil {
			return err
		}
	}
	if err := p.known("only", p.Only); err != nil || len(p.Only) == 0 {
		return err
	}
	left := func(name string) bool { return !slices.Contains(p.Only, name) }
	p.Captures = slices.DeleteFunc(p.Captures, func(c entry) bool { return left(c.name) })
	p.Means = slices.DeleteFunc(p.Means, func(m suiteMean) bool { return slices.ContainsFunc(m.Captures, left) })
	return nil
}

// known refuses names that are none of captures.
func (p *Plan) known(where string, names []string) error {
	for _, name := range names {
		if p.capture(name) == nil {
			return p.wrong("name captures of the suite", "%s: there is no capture %s", where, name)
		}
	}
	return nil
}

// capture finds a capture, nil if there is none of the name.
func (p *Plan) capture(name string) *entry {
	for i := range p.Captures {
		if p.Captures[i].name == name {
			return &p.Captures[i]
		}
	}
	return nil
}
