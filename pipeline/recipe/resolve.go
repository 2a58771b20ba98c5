package recipe

import (
	"cmp"
	"reflect"
	"strings"
)

// Origin says where the value of a setting comes from.
type Origin struct {
	Name   string
	Chosen bool // by the user: what follows from something else leaves it as it is, see MayChange
}

// The origins of values. What is known of one stands here; its strength is its place in the list that Resolve gets.
var (
	FromDefault    = Origin{Name: "the defaults"}
	FromPreset     = Origin{Name: "the preset"}
	FromFile       = Origin{"the configuration file", true}
	FromCaller     = Origin{"the command line", true} // or options of the Go API
	FromCommand    = Origin{Name: "the command"}      // whatever was asked for
	FromCheckpoint = Origin{"the run so far", true}
	FromCapture    = Origin{Name: "the capture"} // its photos, its points, and the memory for them
	FromTimeLimit  = Origin{"the time limit", true}
)

// Layer gives settings their values, by name. Names that are no setting of Config have an origin alone.
type Layer struct {
	// Of its values. The zero Origin is that of a layer that multiplies values, which keep theirs.
	Origin
	// Values computes them from what the layers below give, and from nothing that changes. A layer without it is left
	// out.
	Values func(below *Resolved) map[string]any
}

// Resolved is a configuration, and where its values come from.
type Resolved struct {
	Config  Config
	Written Config // before numbers of steps were multiplied
	origins map[string]Origin
	chosen  map[string]Origin
}

// Resolve lays layers upon each other, the weakest first, on a configuration of defaults.
func Resolve(defaults Config, layers ...Layer) *Resolved {
	r := &Resolved{Config: defaults, origins: map[string]Origin{}, chosen: map[string]Origin{}}
	multiplied := false
	for _, l := range layers {
		if l.Values == nil {
			continue
		}
		values := l.Values(r)
		if l.Origin == (Origin{}) && !multiplied {
			r.Written, multiplied = r.Config, true
		}
		for name, value := range values {
			r.put(strings.ReplaceAll(name, "-", "_"), value, l.Origin)
		}
	}
	if !multiplied {
		r.Written = r.Config
	}
	return r
}

// put gives a setting a value.
func (r *Resolved) put(key string, value any, from Origin) {
	if s := SettingNamed(key); s != nil {
		reflect.ValueOf(s.Of(&r.Config)).Elem().Set(reflect.ValueOf(value))
	}
	if from != (Origin{}) {
		r.origins[key] = from
	}
	if from.Chosen {
		r.chosen[key] = from
	}
}

// Origin returns where a setting has its value from. Names may have dashes.
func (r *Resolved) Origin(name string) Origin {
	return cmp.Or(r.origins[strings.ReplaceAll(name, "-", "_")], FromDefault)
}

// ChosenBy returns by what the user chose a value of a setting, whatever a stronger layer made of it. FromDefault: by
// nothing.
func (r *Resolved) ChosenBy(name string) Origin {
	return cmp.Or(r.chosen[strings.ReplaceAll(name, "-", "_")], FromDefault)
}

// Chosen reports whether the user chose a value of a setting.
func (r *Resolved) Chosen(name string) bool { return r.ChosenBy(name).Chosen }

// Value returns the value of a setting.
func (s *Setting) Value(c *Config) any { return reflect.ValueOf(s.Of(c)).Elem().Interface() }
