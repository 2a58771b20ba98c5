package spec

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// settings.json lists the settings of train that a task may give, and the presets. A test of the command writes it from
// the table of flags.
//
//go:embed settings.json
var settingsFile []byte

// Setting is one of train's settings.
type Setting struct {
	Name    string   `json:"name"` // with underscores
	Type    string   `json:"type"` // text, int, float, bool or ints
	Aliases []string `json:"aliases,omitempty"`
	Words   []string `json:"words,omitempty"`  // that a text is one of
	Former  string   `json:"former,omitempty"` // a word of earlier versions, which train takes, too; "": there is none
	Seed    bool     `json:"seed,omitempty"`   // an integer up to 2^64 - 1: large ones stand in quotes
}

// flag is the setting's flag, without dashes in front.
func (s *Setting) flag() string { return strings.ReplaceAll(s.Name, "_", "-") }

// Settings is the content of settings.json.
type Settings struct {
	Settings []Setting `json:"settings"`
	Presets  []string  `json:"presets"`
}

var settings = func() (s Settings) {
	if err := json.Unmarshal(settingsFile, &s); err != nil {
		panic(err) // the file is part of the program
	}
	return s
}()

// preset is a field that names one of train's presets; fast was another name of default.
func preset(help string) field {
	f := oneOf("preset", help, settings.Presets...)
	f.former = "fast"
	return f
}

// maxSettingList is how many numbers a setting has at most.
const maxSettingList = 1000

// Types of settings.
const (
	settingText  = "text"
	settingInt   = "int"
	settingFloat = "float"
	settingBool  = "bool"
	settingInts  = "ints"
)

// settingOf finds a setting by any of its names, with dashes or underscores.
func settingOf(key string) *Setting {
	key = strings.ReplaceAll(key, "-", "_")
	for i := range settings.Settings {
		s := &settings.Settings[i]
		if s.Name == key {
			return s
		}
		for _, a := range s.Aliases {
			if a == key {
				return s
			}
		}
	}
	return nil
}

// settingNames are all names of settings, for "did you mean".
func settingNames() (names []string) {
	for _, s := range settings.Settings {
		names = append(names, s.Name)
	}
	return names
}

// setting checks a value of the table set and returns the flag that gives it to train.
func (r *reader) setting(at path, key string, value any) (Flag, error) {
	s := settingOf(key)
	if s == nil {
		return Flag{}, r.unknown(at, key, settingNames(),
			"settings that name files, devices or what is shown are the worker's; "+
				fault.Command("train --print-config")+" lists the others")
	}
	text, fits := textOf(s, value)
	if !fits {
		return Flag{}, r.wrong(at, "as in train's configuration file, see docs/train.md", "expected %s, got %s",
			typeNames[s.Type], treeName(value))
	}
	if s.Type == settingText {
		if len(s.Words) > 0 && !slices.Contains(s.Words, text) && (s.Former == "" || text != s.Former) {
			return Flag{}, r.wrong(at, didYouMean(text, s.Words, "give "+wording.Or(s.Words)),
				"%q is not one of %s", text,
				strings.Join(s.Words, ", "))
		}
		if len(text) > maxText || !textRegexp.MatchString(text) {
			return Flag{}, r.wrong(at, "file names are not settings of a job",
				"%.40q is not a valid value for a setting",
				text)
		}
	}
	return Flag{s.flag(), text}, nil
}

var typeNames = map[string]string{settingText: "a text", settingInt: "a whole number", settingFloat: "a number",
	settingBool: "true or false", settingInts: "a list of whole numbers"}

// textOf is the text of a value for a flag, if its type is right.
func textOf(s *Setting, value any) (string, bool) {
	text := joined(value, ",")
	switch x := value.(type) {
	case int64:
		return text, s.Type == settingInt || s.Type == settingFloat || s.Type == settingText
	case float64:
		return text, s.Type == settingFloat || s.Type == settingText
	case bool:
		return text, s.Type == settingBool
	case string:
		if s.Seed {
			_, err := strconv.ParseUint(x, 10, 64)
			return x, err == nil
		}
		return x, s.Type == settingText
	case []any:
		numbers := !slices.ContainsFunc(x, func(v any) bool {
			_, isInt := v.(int64)
			_, isFloat := v.(float64)
			return !isInt && !(isFloat && s.Type == settingText)
		})
		return text, len(x) <= maxSettingList && numbers && (s.Type == settingInts || s.Type == settingText)
	}
	return "", false
}
