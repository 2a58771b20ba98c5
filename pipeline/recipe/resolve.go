package recipe

import (
	"reflect"
	"strings"
)

// Origin says where the value of a setting comes from.
type Origin int

const (
	FromDefault Origin = iota
	FromPreset
	FromFile       // a configuration file
	FromCaller     // flags of the command, or options of the Go API
	FromCheckpoint // the run that is resumed
	FromCapture    // its photos, its points, and the memory for them
	FromTimeLimit
)

// Layer gives settings their values, by name. Names that are no setting of Config have an origin alone.
type Layer struct {
	Origin Origin
	Values map[string]any
	// The values are those below, multiplied: their origins stay.
	Multiplies bool
}

// Source computes a layer from what the layers below it give. It depends on nothing that changes.
type Source func(below *Resolved) Layer

// Resolved is a configuration, and where its values come from.
type Resolved struct {
	Config  Config
	Written Config // before numbers of steps were multiplied
	origins map[string]Origin
	asked   map[string]Origin
}

// Resolve lays sources upon each other, the weakest first, on a configuration of defaults. Sources that are nil are
// left out.
func Resolve(defaults Config, sources ...Source) *Resolved {
	r := &Resolved{Config: defaults, origins: map[string]Origin{}, asked: map[string]Origin{}}
	multiplied := false
	for _, source := range sources {
		if source == nil {
			continue
		}
		l := source(r)
		if l.Multiplies && !multiplied {
			r.Written, multiplied = r.Config, true
		}
		for name, value := range l.Values {
			r.put(strings.ReplaceAll(name, "-", "_"), value, &l)
		}
	}
	if !multiplied {
		r.Written = r.Config
	}
	return r
}

// put gives a setting a value of a layer.
func (r *Resolved) put(key string, value any, l *Layer) {
	if s := SettingNamed(key); s != nil {
		reflect.ValueOf(s.Of(&r.Config)).Elem().Set(reflect.ValueOf(value))
	}
	if l.Multiplies {
		return
	}
	r.origins[key] = l.Origin
	if l.Origin == FromFile || l.Origin == FromCaller || l.Origin == FromTimeLimit {
		r.asked[key] = l.Origin
	}
}

// Origin returns where a setting has its value from. Names may have dashes.
func (r *Resolved) Origin(name string) Origin { return r.origins[strings.ReplaceAll(name, "-", "_")] }

// AskedBy returns who asked for a value of a setting, whatever a higher layer made of it: the file, the caller or the
// time limit. FromDefault: none of them did.
func (r *Resolved) AskedBy(name string) Origin { return r.asked[strings.ReplaceAll(name, "-", "_")] }

// Asked reports whether the file, the caller or the time limit asked for a value of a setting.
func (r *Resolved) Asked(name string) bool { return r.AskedBy(name) != FromDefault }

// Value returns the value of a setting.
func (s *Setting) Value(c *Config) any { return reflect.ValueOf(s.Of(c)).Elem().Interface() }
