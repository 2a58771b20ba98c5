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

// options.json lists the options of the commands that tasks run. A test of the command writes it from the tables of
// flags.
//
//go:embed options.json
var optionsFile []byte

// Option is an option of a command: its flag in a job.
type Option struct {
	Name    string   `json:"name"` // with underscores
	Type    string   `json:"type"` // text, folder, int, float, bool, ints or floats
	Help    string   `json:"help,omitempty"`
	Min     float64  `json:"min,omitempty"` // of numbers; with Max 0: any
	Max     float64  `json:"max,omitempty"`
	Count   int      `json:"count,omitempty"` // of the numbers in a list
	Aliases []string `json:"aliases,omitempty"`
	Words   []string `json:"words,omitempty"` // that a text is one of
	Seed    bool     `json:"seed,omitempty"`  // an integer up to 2^64 - 1: large ones stand in quotes
	Set     bool     `json:"set,omitempty"`   // a setting of train: a key of the table set
}

// flag is the option's flag, without dashes in front.
func (o *Option) flag() string { return strings.ReplaceAll(o.Name, "_", "-") }

// options are those of each command, and settings those of train that are keys of the table set.
var (
	options = func() (all map[string][]Option) {
		if err := json.Unmarshal(optionsFile, &all); err != nil {
			panic(err) // the file is part of the program
		}
		return all
	}()
	settings = slices.DeleteFunc(slices.Clone(options["train"]), func(o Option) bool { return !o.Set })
)

// option is the key of a command's option. Of one that options.json lacks it is the name alone, so that the test that
// writes the file can run; TestOptions reports it.
func option(command, name string) field {
	list := options[command]
	i := slices.IndexFunc(list, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return field{key: name}
	}
	o := &list[i]
	return field{key: name, kind: optionTypes[o.Type], help: o.Help, min: o.Min, max: o.Max, count: o.Count,
		words: o.Words, flag: o.flag()}
}

var optionTypes = map[string]fieldType{settingText: typeText, "folder": typeKey, settingInt: typeInt,
	settingFloat: typeFloat, settingBool: typeBool, settingInts: typeInts, "floats": typeFloats}

// keys lists the keys of a kind: fields, and the names of options of its command.
func keys(command string, parts ...any) (fields []field) {
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			fields = append(fields, option(command, p))
		case field:
			fields = append(fields, p)
		}
	}
	return fields
}

// preset is a field that names one of train's presets.
func preset(help string) field {
	f := option("train", "preset")
	f.help, f.flag = help, ""
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
func settingOf(key string) *Option {
	key = strings.ReplaceAll(key, "-", "_")
	for i := range settings {
		s := &settings[i]
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
	for _, s := range settings {
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
		if len(s.Words) > 0 && !slices.Contains(s.Words, text) {
			return Flag{}, r.wrong(at, didYouMean(text, s.Words, "give "+wording.Or(s.Words)), "%q is not one of %s",
				text, strings.Join(s.Words, ", "))
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
func textOf(s *Option, value any) (string, bool) {
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
