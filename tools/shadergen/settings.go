package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	settingsFile     = "shaders/settings.schema"
	settingsGLSLFile = "shaders/shared/settings_gen.glsl"
	settingsGoFile   = "pipeline/recipe/config_gen.go"
)

// setting is a block of settings.schema, which documents the fields.
type setting struct {
	key, name    string // name is what code calls it
	kind         string
	def          string // as Go writes it
	interval     interval
	most         float64 // users may ask for no more; 0: for all of the interval
	group        string
	help, source string
	aliases      []string
	needs        [][2]string // setting and word, "" for on or above 0
	words        []string
	step         bool   // a member of StepParams
	factor       string // of that: "", scene or batch
}

// interval is a range of numbers; the brackets of the schema say whether the ends belong to it.
type interval struct {
	text            string // "": there is none
	least, most     float64
	noLeast, noMost bool // the ends do not belong to it
}

type schema struct {
	order    []string    // keys in the order of Config's JSON
	sources  [][2]string // word and title
	settings []*setting
}

// goTypes are the types of Config's fields by the schema's.
var goTypes = map[string]string{
	"count": "int", "steps": "int", "float": "float64", "rate": "float64",
	"switch": "bool", "choice": "string", "colour": "[3]float32", "seed": "uint64",
}

// readSettings returns what the settings' schema below root says, or nil where there is none.
func readSettings(root string) (*schema, error) {
	text, err := os.ReadFile(filepath.Join(root, settingsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseSettings(string(text))
}

func parseSettings(text string) (*schema, error) {
	p := settingsParser{schema: &schema{}}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, continued) {
			continue
		}
		for _, next := range lines[i+1:] {
			if !strings.HasPrefix(next, continued) {
				break
			}
			line += " " + strings.TrimSpace(next)
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", settingsFile, i+1, err)
		}
	}
	if err := p.schema.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", settingsFile, err)
	}
	return p.schema, nil
}

// continued begins a line that goes on with the one above.
const continued = "        "

// settingsParser reads the schema line by line.
type settingsParser struct {
	schema *schema
	group  string
	last   *setting // whose block is being read
}

func (p *settingsParser) line(line string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch indented := strings.HasPrefix(line, " "); {
	case indented && p.last == nil:
		return errors.New("an indented line belongs to a setting, and none is above")
	case indented:
		return p.last.attribute(word, rest)
	case word == "order":
		p.schema.order = append(p.schema.order, strings.Fields(rest)...)
	case word == "source":
		name, title, _ := strings.Cut(rest, " ")
		p.schema.sources = append(p.schema.sources, [2]string{name, title})
	case word == "group":
		p.group, p.last = rest, nil
	default:
		s, err := newSetting(word, rest, p.group)
		if err != nil {
			return fmt.Errorf("setting %s: %w", word, err)
		}
		p.last, p.schema.settings = s, append(p.schema.settings, s)
	}
	return nil
}

var settingKey = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// newSetting makes a setting of its first line: key, then type, default and range.
func newSetting(key, rest, group string) (*setting, error) {
	kind, rest, _ := strings.Cut(rest, " ")
	def, bounds, _ := strings.Cut(strings.TrimSpace(rest), " ")
	s := &setting{key: key, name: key, kind: kind, group: group}
	switch {
	case !settingKey.MatchString(key):
		return nil, errors.New("a name is small letters, digits and single underscores")
	case group == "":
		return nil, errors.New("it stands before the first group")
	case goTypes[kind] == "":
		return nil, fmt.Errorf("there is no type %q", kind)
	}
	var err error
	if bounds = strings.TrimSpace(bounds); bounds != "" {
		if s.interval, err = parseInterval(bounds, goTypes[kind] == "int"); err != nil {
			return nil, err
		}
	}
	unranged := []string{"switch", "choice", "seed"}
	if slices.Contains(unranged, kind) != (s.interval.text == "") {
		return nil, fmt.Errorf("numbers and colours have a range and nothing else does: %q", bounds)
	}
	s.def, err = s.literal(def)
	return s, err
}

// attribute takes an indented line of the setting's block.
func (s *setting) attribute(word, rest string) error {
	switch word {
	case "help":
		s.help = rest
	case "from":
		s.source = rest
	case "also":
		s.aliases = strings.Fields(rest)
	case "words":
		s.words = strings.Fields(rest)
	case "name":
		s.name = rest
	case "most":
		var err error
		s.most, err = strconv.ParseFloat(rest, 64)
		return err
	case "needs":
		key, value, _ := strings.Cut(rest, " ")
		s.needs = append(s.needs, [2]string{key, value})
	case "to":
		target, factor, _ := strings.Cut(rest, " * ")
		if target != "step" || !slices.Contains([]string{"", "scene", "rate"}, factor) {
			return fmt.Errorf("a setting goes to step, to step * scene or to step * rate, not %q", rest)
		}
		s.step, s.factor = true, factor
	default:
		return fmt.Errorf("%s is none of help, from, also, words, most, name, needs, to", word)
	}
	return nil
}

var intervalForm = regexp.MustCompile(`^([\[(])([^,]+), ([^,]+)([\])])$`)

// parseInterval reads a range as in (0, 1]. An open end of real numbers is the largest float32, because that is what
// kernels take; one of whole numbers is none.
func parseInterval(text string, whole bool) (v interval, err error) {
	m := intervalForm.FindStringSubmatch(text)
	if m == nil {
		return v, fmt.Errorf("a range is written as in [0, 1), not %q", text)
	}
	least, err1 := strconv.ParseFloat(m[2], 64)
	most, err2 := strconv.ParseFloat(m[3], 64)
	if err := errors.Join(err1, err2); err != nil {
		return v, err
	}
	v = interval{text: text, least: least, most: most, noLeast: m[1] == "(", noMost: m[4] == ")"}
	if math.IsInf(most, 1) {
		v.noMost = false
		if !whole {
			v.most = math.MaxFloat32
		}
	}
	return v, nil
}

func (v interval) holds(x float64) bool {
	return x >= v.least && x <= v.most && !(v.noLeast && x == v.least) && !(v.noMost && x == v.most)
}

// literal checks a default and writes it as Go does.
func (s *setting) literal(text string) (string, error) {
	switch s.kind {
	case "switch":
		if text != "off" {
			return "", errors.New("switches are off by default")
		}
		return "false", nil
	case "choice":
		return strconv.Quote(text), nil
	case "seed":
		_, err := strconv.ParseUint(text, 10, 64)
		return text, err
	case "colour":
		channels := strings.Split(text, ",")
		for _, c := range channels {
			if x, err := strconv.ParseFloat(c, 32); err != nil || !s.interval.holds(x) || len(channels) != 3 {
				return "", fmt.Errorf("%q is no colour", text)
			}
		}
		return "[3]float32{" + strings.Join(channels, ", ") + "}", nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err == nil && goTypes[s.kind] == "int" {
		_, err = strconv.ParseInt(text, 10, 64)
	}
	if err == nil && !s.interval.holds(x) {
		err = fmt.Errorf("the default %s is not in %s", text, s.interval.text)
	}
	return text, err
}

// check reports what does not fit together.
func (c *schema) check() error {
	seen := map[string]*setting{}
	for _, s := range c.settings {
		if seen[s.key] != nil {
			return fmt.Errorf("setting %s is there twice", s.key)
		}
		seen[s.key] = s
	}
	for _, s := range c.settings {
		if err := c.checkSetting(s, seen); err != nil {
			return fmt.Errorf("setting %s: %w", s.key, err)
		}
	}
	for i, key := range c.order {
		if seen[key] == nil || slices.Contains(c.order[:i], key) {
			return fmt.Errorf("order: %s is no setting, or is there twice", key)
		}
	}
	return nil
}

var settingInText = regexp.MustCompile(`\{(\w+)\}`)

func (c *schema) checkSetting(s *setting, all map[string]*setting) error {
	if s.help == "" {
		return errors.New("help is missing")
	}
	isSource := func(known [2]string) bool { return known[0] == s.source }
	if s.source != "" && !slices.ContainsFunc(c.sources, isSource) {
		return fmt.Errorf("there is no source %q", s.source)
	}
	if isChoice := s.kind == "choice"; isChoice != slices.Contains(s.words, strings.Trim(s.def, `"`)) {
		return errors.New("a choice has words, its default among them, and nothing else has")
	}
	isReal := goTypes[s.kind] == "float64"
	if s.step && slices.Contains([]string{"choice", "colour", "seed"}, s.kind) || s.factor != "" && !isReal {
		return fmt.Errorf("a %s does not go to step so", s.kind)
	}
	for _, n := range s.needs {
		other := all[n[0]]
		if others, either := strings.CutPrefix(n[1], "or "); either {
			for _, name := range append(strings.Split(others, " or "), n[0]) {
				if all[name] == nil || all[name].kind != "switch" {
					return fmt.Errorf("it needs one of several, and %s is no switch", name)
				}
			}
			continue
		}
		if other == nil || (n[1] != "") != (other.kind == "choice") ||
			n[1] != "" && !slices.Contains(other.words, n[1]) {
			return fmt.Errorf("it needs %s %s, and there is no such setting or word", n[0], n[1])
		}
	}
	for _, m := range settingInText.FindAllStringSubmatch(s.help, -1) {
		if all[m[1]] == nil && m[1] != "range" {
			return fmt.Errorf("its help speaks of {%s}, which is no setting", m[1])
		}
	}
	if s.most != 0 && (s.interval.text == "" || !s.interval.holds(s.most)) {
		return fmt.Errorf("users may ask for %g at most, which is not in %s", s.most, s.interval.text)
	}
	ends := fmt.Sprintf("%g to %g", s.interval.least, cmp.Or(s.most, s.interval.most))
	s.help = strings.ReplaceAll(s.help, "{range}", ends)
	return nil
}

// inOrder returns the settings in the order of Config's JSON.
func (c *schema) inOrder() []*setting {
	place := func(s *setting) int {
		if i := slices.Index(c.order, s.key); i >= 0 {
			return i
		}
		return len(c.order)
	}
	list := slices.Clone(c.settings)
	slices.SortStableFunc(list, func(a, b *setting) int { return place(a) - place(b) })
	return list
}
