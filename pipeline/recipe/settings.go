package recipe

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Setting describes a field of Config. Settings, which tools/shadergen prints from shaders/settings.schema, has all of
// them; flags, keys of configuration files, help, documentation and checks follow from it.
type Setting struct {
	Name    string // of the field in JSON
	Group   string // chapter of the help
	Help    string // what it does: `N` names the value, {other_setting} another setting
	Source  string // whose default it is, see Sources; "": this program's own
	Aliases []string
	Words   []string // the values of a text
	Steps   bool     // counts steps
	Rate    bool     // a learning rate of splats
	Range   Range    // of a number, and of each channel of a colour
	// Users may ask for no more than this, see Asked; 0: for all of Range.
	MostAsked float64
	Needs     []Need // without these it has no effect
	// Of returns a pointer to the field: *int, *uint64, *float64, *bool, *string or *[3]float32.
	Of func(*Config) any
}

// Asked returns the part of the range that users may ask for. Config takes all of it, because ForShare raises rates.
func (s *Setting) Asked() Range {
	r := s.Range
	if s.MostAsked > 0 {
		r.Most = s.MostAsked
	}
	return r
}

type Range struct {
	Least, Most           float64
	AboveLeast, BelowMost bool // Least, or Most, does not belong to it
}

func (r Range) Holds(x float64) bool {
	return x >= r.Least && x <= r.Most && !(r.AboveLeast && x == r.Least) && !(r.BelowMost && x == r.Most)
}

// Check reports a value of which a number is out of the range.
func (r Range) Check(name string, value any, numbers ...float64) error {
	if !slices.ContainsFunc(numbers, func(x float64) bool { return !r.Holds(x) }) {
		return nil
	}
	return fmt.Errorf("%s is %v; it must be %v", name, value, r)
}

// String says what belongs to the range, as in "at least 1" or "above 0 and at most 1".
func (r Range) String() string {
	switch {
	case math.IsInf(r.Most, 1):
		return "at least " + numberText(r.Least)
	case !r.AboveLeast && !r.BelowMost:
		return "from " + numberText(r.Least) + " to " + numberText(r.Most)
	}
	least, most := "at least ", "at most "
	if r.AboveLeast {
		least = "above "
	}
	if r.BelowMost {
		most = "below "
	}
	return least + numberText(r.Least) + " and " + most + numberText(r.Most)
}

// numberText writes whole numbers out and the largest float32 short.
func numberText(x float64) string {
	switch {
	case x == math.MaxFloat32:
		return fmt.Sprintf("%.2g", x)
	case x == math.Trunc(x):
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%g", x)
}

// Need is what a setting has no effect without: another that is on or above 0, or that is a word. A word that begins
// with "or " names other switches, any of which will do. shadergen has made sure that there are those of these names.
type Need struct{ Setting, Word string }

// switches returns the names of several switches of which one is needed, nil for another need.
func (n Need) switches() []string {
	if others, several := strings.CutPrefix(n.Word, "or "); several {
		return append([]string{n.Setting}, strings.Split(others, " or ")...)
	}
	return nil
}

func (n Need) Met(c *Config) bool {
	if list := n.switches(); list != nil {
		return slices.ContainsFunc(list, func(name string) bool { return Need{Setting: name}.Met(c) })
	}
	switch p := SettingNamed(n.Setting).Of(c).(type) {
	case *bool:
		return *p
	case *int:
		return *p > 0
	case *float64:
		return *p > 0
	case *string:
		return *p == n.Word
	}
	return true
}

// String names the need, with the setting's name in braces.
func (n Need) String() string {
	if list := n.switches(); list != nil {
		return "{" + strings.Join(list, "} or {") + "}"
	}
	if n.Word != "" {
		return "{" + n.Setting + "} " + n.Word
	}
	if _, isSwitch := SettingNamed(n.Setting).Of(&Config{}).(*bool); isSwitch {
		return "{" + n.Setting + "}"
	}
	return "{" + n.Setting + "} above 0"
}

// SettingNamed returns the setting of a name, nil if there is none.
func SettingNamed(name string) *Setting {
	i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &Settings[i]
}

// SplatRates returns where the learning rates of splats are: those of all tensors of model.schema.
func (c *Config) SplatRates() (list []*float64) {
	for i := range Settings {
		if Settings[i].Rate {
			list = append(list, Settings[i].Of(c).(*float64))
		}
	}
	return list
}

// Check reports a value of c that is no word of the setting or out of r, which is Range or Asked. name is what the
// reader knows the setting by.
func (s *Setting) Check(c *Config, name string, r Range) error {
	switch p := s.Of(c).(type) {
	case *int:
		return r.Check(name, *p, float64(*p))
	case *float64:
		return r.Check(name, *p, *p)
	case *[3]float32:
		return r.Check(name, *p, float64(p[0]), float64(p[1]), float64(p[2]))
	case *string:
		if !slices.Contains(s.Words, *p) {
			return fmt.Errorf("%s is %q; it must be one of %s", name, *p, strings.Join(s.Words, ", "))
		}
	}
	return nil
}
