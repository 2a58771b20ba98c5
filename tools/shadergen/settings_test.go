package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// goodSettings has one setting of each type.
const goodSettings = `# Comment.
order rate_of_x n

source paper Somebody: Something,
        2024

group Main
n count 3 [0, 10]
    help so many: ` + "`N`" + `, {range}
    from paper
    also num many
    to step
every steps 100 [1, inf)
    help every ` + "`N`" + ` steps, with {n}
        and no other
    needs n
    needs how fast
x float 0.5 (0, 1)
    help share
    to step * scene
rate_of_x rate 1e-3 [0, inf)
    help rate, {range}
    most 10
    name lr_x
    to step * rate
on switch off
    help turns it on
    to step
group Other
how choice slow
    words slow fast
    help how
tint colour 0,0.5,1 [0, 1]
    help colour
seed seed 42
    help seed
`

func TestSettings(t *testing.T) {
	c := must.Get(parseSettings(goodSettings))(t)
	config := must.Get(emitConfig(c))(t)
	text := strings.Join(strings.Fields(string(config)), " ")
	for _, want := range []string{
		"type Config struct { // rate, 0 to 10 LRX float64 `json:\"rate_of_x\"` // so many: N, 0 to 10 N int " +
			"`json:\"n\"` // every N steps",
		"Tint: [3]float32{0, 0.5, 1},", `How: "slow",`, "On: false,", "LRX: 1e-3,",
		`{"paper", "Somebody: Something, 2024"},`,
		"Help: \"so many: `N`, 0 to 10\", Source: \"paper\", Aliases: []string{\"num\", \"many\"}, " +
			"Range: Range{Most: 10},",
		"Help: \"every `N` steps, with {n} and no other\", Steps: true, Range: Range{Least: 1, Most: math.Inf(1)}, " +
			`Needs: []Need{{"n", ""}, {"how", "fast"}},`,
		"Range: Range{Most: 1, AboveLeast: true, BelowMost: true},",
		"Rate: true, Range: Range{Most: math.MaxFloat32}, MostAsked: 10,",
		`Group: "Other", Help: "how", Words: []string{"slow", "fast"}, Of: func(c *Config) any { return &c.How },`,
		"p.N = uint32(c.N) p.X = float32(scene * c.X) p.LrX = float32(rate * c.LRX) p.On = layout.Bit(c.On) }",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("config lacks %q:\n%s", want, config)
		}
	}
	glsl := string(emitSettingsGLSL(c))
	for _, want := range []string{"    // so many: N, 0 to 10\n    uint n;\n", "float x;", "float lr_x;", "uint on;"} {
		if !strings.Contains(glsl, want) {
			t.Errorf("GLSL lacks %q:\n%s", want, glsl)
		}
	}
	if strings.Contains(glsl, "every") || strings.Contains(glsl, "tint") {
		t.Errorf("GLSL has settings that stay on the host:\n%s", glsl)
	}
}

// TestSettingsRefused makes one mistake at a time.
func TestSettingsRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"n count 3 [0, 10]", "n count 11 [0, 10]", "settings.schema:8: setting n: the default 11 is not in [0, 10]"},
		{"n count 3 [0, 10]", "n count 0.5 [0, 10]", "setting n:"},
		{"n count 3 [0, 10]", "n count 3", "numbers and colours have a range"},
		{"n count 3 [0, 10]", "n count 3 0..10", "a range is written as in [0, 1)"},
		{"n count 3 [0, 10]", "N count 3 [0, 10]", "small letters"},
		{"n count 3 [0, 10]", "n number 3 [0, 10]", `no type "number"`},
		{"x float 0.5 (0, 1)", "x float 0 (0, 1)", "the default 0 is not in (0, 1)"},
		{"on switch off", "on switch on", "off by default"},
		{"on switch off", "n switch off", "setting n is there twice"},
		{"tint colour 0,0.5,1", "tint colour 0,0.5", "is no colour"},
		{"seed seed 42", "seed seed -1", "setting seed:"},
		{"choice slow", "choice lazy", "its default among them"},
		{"    help how\n", "", "setting how: help is missing"},
		{"from paper", "from nowhere", `no source "nowhere"`},
		{"needs n\n", "needs m\n", "no such setting"},
		{"needs how fast", "needs how", "no such setting or word"},
		{"needs how fast", "needs how quick", "no such setting or word"},
		{"with {n}", "with {m}", "speaks of {m}"},
		{"    help colour", "    help colour\n    to step", "a colour does not go to step"},
		{"to step * scene", "to step * time", "not \"step * time\""},
		{"    most 10", "    most -1", "ask for -1 at most, which is not in [0, inf)"},
		{"    most 10", "    most ten", "settings.schema:23"},
		{"    from paper", "    fron paper", "fron is none of help, from"},
		{"group Main\n", "group Main\n    to step\n", "none is above"},
		{"group Main\n", "", "before the first group"},
		{"order rate_of_x n", "order rate_of_x n m", "order: m is no setting"},
	} {
		text := strings.Replace(goodSettings, c.from, c.to, 1)
		if _, err := parseSettings(text); text == goodSettings || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: error %v, want %q", c.to, c.from, err, c.want)
		}
	}
}

// TestMembersOfInclude wants the comments of a file that is included inside of a struct, without its header.
func TestMembersOfInclude(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.comp":       "struct P {\n    uint first; // one\n    #include \"members.glsl\"\n    uint last;\n};\n",
		"members.glsl": "// Header.\n\n    // two\n    uint second;\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	s := must.Get(readSource(filepath.Join(dir, "a.comp"), dir))(t)
	p := s.structs["P"]
	if above := p.above["second"]; len(above) != 1 || above[0] != "two" || p.members["first"] != "one" ||
		len(p.above["last"]) != 0 {
		t.Errorf("%+v", p)
	}
}
