package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/train"
	"vksplat/internal/wording"
	"vksplat/pipeline/recipe"
)

// readPreset returns the settings of a preset.
func readPreset(name string) (settings, error) {
	file := path.Join("presets", name+".toml")
	data, err := train.Presets.ReadFile(file)
	if err != nil {
		return nil, fault.Usagef("give "+wording.Or(train.PresetNames()), "unknown preset %q", name)
	}
	return parseSettings("preset "+name, string(data))
}

// maxConfigFile bounds the bytes of a configuration file: all keys fit into a hundredth of it.
const maxConfigFile = 1 << 20

// readConfig returns the settings of a configuration file.
func readConfig(file string) (settings, error) {
	data, err := readConfigText(file, "name a TOML file, as vksplat train --print-config prints one")
	if err != nil {
		return nil, err
	}
	return parseSettings(file, data)
}

// readConfigText returns the text of a TOML file. hint says which is meant.
func readConfigText(file, hint string) (string, error) {
	data, err := fault.ReadFile(file, maxConfigFile)
	if err == nil {
		err = checkText(data)
	}
	if err != nil {
		return "", fault.Usagef(hint, "read configuration %s: %w", file, err)
	}
	return string(data), nil
}

// checkText refuses bytes that are no UTF-8, and a mark of it with nothing after it: package toml takes both for an
// empty file. A mark before text is fine.
func checkText(data []byte) error {
	const mark = "\xef\xbb\xbf"
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return errors.New("it is UTF-16 text, save it as UTF-8")
	case string(data) == mark:
		return errors.New("it holds only a byte order mark")
	}
	for line, rest := 1, data; len(rest) > 0; line++ {
		var text []byte
		text, rest, _ = bytes.Cut(rest, []byte("\n"))
		if !utf8.Valid(text) {
			return fmt.Errorf("line %d is not UTF-8 text", line)
		}
	}
	return nil
}

// settings are texts for the Set methods of options, by the options' names.
type settings map[string]string

// parseSettings reads TOML and checks every key and value. The errors name the
// line in file.
func parseSettings(file, data string) (settings, error) {
	var values map[string]toml.Primitive
	md, err := toml.Decode(data, &values)
	if err != nil {
		return nil, configError(file, err, nil)
	}
	table := trainTable(newTrainOptions()) // what is set here only shows whether it can be
	aliases := aliasesOf(table)
	read := settings{}
	for _, key := range md.Keys() {
		value, top := values[key[0]]
		if !top || len(key) > 1 {
			continue // below a table, which is refused as a whole
		}
		v := &settingValue{key: key[0], option: find(table, canonical(key[0], aliases)), table: table}
		if v.option != nil {
			if _, twice := read[v.option.name]; twice {
				v.twice = true
			}
		}
		if err := md.PrimitiveDecode(value, v); err != nil {
			return nil, configError(file, err, v.refused)
		}
		read[v.option.name] = v.text
	}
	return read, nil
}

// configError says where in a file something is wrong. refused is the error of a
// value, which package toml does not pass on.
func configError(file string, err, refused error) error {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return fault.Usagef("as vksplat train --print-config prints it", "check %s: %w", file, err)
	}
	where := fmt.Sprintf("%s:%d", file, parse.Position.Line)
	if errors.Is(refused, fault.ErrUsage) {
		return fault.Usagef("", "check %s: %w", where, refused)
	}
	return fault.Usagef("TOML has lines like: iterations = 30000", "check %s: %s", where,
		wording.Clause(parse.Message))
}

// settingValue takes in one value of a file, as package toml hands it over.
type settingValue struct {
	key    string
	option *option // nil for an unknown key
	table  []optionGroup
	twice  bool // the option has been set already, by another of its names

	text    string
	refused error
}

// UnmarshalTOML checks the value and keeps its text, or why it was refused.
// Package toml knows the line of an error.
func (v *settingValue) UnmarshalTOML(data any) error {
	v.refused = v.take(data)
	return v.refused
}

func (v *settingValue) take(data any) (err error) {
	switch {
	case v.option == nil && isTable(data):
		return fault.Usagef("write its keys without a table, as in: iterations = 30000",
			"%s is a table, which this file cannot have", v.key)
	case v.option == nil || v.option.flag:
		return v.unknown()
	case v.twice:
		return fault.Usagef("keep one of the two", "%s is set already, by another name", v.option.key())
	}
	if v.text, err = v.option.textOf(data); err != nil {
		return fault.Usagef(v.option.example(), "key %s: %w", v.key, err)
	}
	example := v.option.example() // of the default
	if err := v.option.value.Set(v.text); err != nil {
		return fault.Usagef(cmp.Or(fault.Hint(err), example), "key %s: %w", v.key, err)
	}
	if v.option.check != nil {
		if err := v.option.check(v.key); err != nil {
			return fault.Usagef(example, "%w", err)
		}
	}
	return nil
}

// unknown is the error of a key that means nothing, with the nearest that does.
func (v *settingValue) unknown() error {
	if v.option != nil {
		return fault.Usagef("give it on the command line: --"+v.option.name, "key %s: this is a flag, not a setting",
			v.key)
	}
	var keys []string
	for _, g := range v.table {
		for _, o := range g.options {
			if !o.flag {
				keys = append(keys, o.key())
			}
		}
	}
	return fault.Usagef(cli.DidYouMean(strings.ToLower(strings.ReplaceAll(v.key,
		"-", "_")), keys, "vksplat train --print-config lists all keys"), "unknown key %s", v.key)
}

// textOf returns a value of a file as the text for Set, if its type is right.
func (o *option) textOf(data any) (string, error) {
	_, plainText := o.value.(cli.Value[string]) // as a file's name: a number or a list in its place is a mistake
	_, seed := o.value.(cli.Value[uint64])      // above the largest integer of TOML it stands in quotes
	var kinds []kind
	switch data.(type) {
	case string:
		kinds = []kind{kindText}
	case int64:
		kinds = []kind{kindText, kindInt, kindFloat}
	case float64:
		kinds = []kind{kindText, kindFloat}
	case bool:
		kinds = []kind{kindBool}
	case []any:
		kinds = []kind{kindText, kindNumbers}
	}
	list, isList := data.([]any)
	_, isText := data.(string)
	switch {
	case plainText && !isText, !slices.Contains(kinds, o.kind) && !(seed && isText):
		return "", fmt.Errorf("expected %s, got %s", kindNames[o.kind], tomlName(data))
	case isList:
		return listText(list)
	}
	return fmt.Sprint(data), nil
}

func isTable(data any) bool {
	switch data.(type) {
	case map[string]any, []map[string]any:
		return true
	}
	return false
}

// listText joins the numbers of a list with commas.
func listText(list []any) (string, error) {
	words := make([]string, len(list))
	for i, x := range list {
		switch x.(type) {
		case int64, float64:
			words[i] = fmt.Sprint(x)
		default:
			return "", fmt.Errorf("expected a list of numbers, one of these is %s", tomlName(x))
		}
	}
	return strings.Join(words, ","), nil
}

var kindNames = [...]string{
	kindText: "a quoted string", kindInt: "a whole number", kindFloat: "a number", kindBool: "true or false",
	kindNumbers: "a list of whole numbers",
}

// tomlName is TOML's name for a value's type.
func tomlName(data any) string {
	if isTable(data) {
		return "a table, which this file cannot have"
	}
	switch data.(type) {
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case bool:
		return "true or false"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "a date"
}

// example is a hint with a line that would do.
func (o *option) example() string {
	if line := strings.TrimSpace(o.tomlLine()); line != "" {
		return "as in: " + line
	}
	if o.kind == kindNumbers {
		return "as in: " + o.key() + " = [7000, 30000]"
	}
	argument, _ := pflag.UnquoteUsage(&pflag.Flag{Usage: o.help, Value: o.value})
	if like := examples[argument]; like != "" {
		argument = like
	}
	return fmt.Sprintf("as in: %s = %q", o.key(), argument)
}

// examples are values of options without a default, by what help calls their value.
var examples = map[string]string{"BYTES": "6G", "N": "2", "ID": "0", "DIR": "folder", "FILE": "file.txt"}

// tomlLine is the option's present value as a line of a configuration file, or ""
// where it has none.
func (o *option) tomlLine() string {
	var v any = o.value.String()
	switch held := o.value.(type) {
	case cli.Value[uint64]: // TOML has no larger integers
		if *held.To <= math.MaxInt64 {
			v = *held.To
		}
	case interface{ Get() any }:
		v = held.Get()
	case *cli.Steps:
		v = []int(*held)
	}
	if v == "" {
		return ""
	}
	line, err := toml.Marshal(map[string]any{o.key(): v})
	if err != nil {
		panic(err) // no value of these types fails
	}
	return string(line)
}

// resolveSettings completes o, which holds the defaults and what flags were given, with
// the configuration file and the preset, and checks it.
func resolveSettings(o *train.Options, flags *pflag.FlagSet) error {
	var given []string
	flags.Visit(func(f *pflag.Flag) { given = append(given, f.Name) })
	config := settings{}
	if o.ConfigFile != "" {
		var err error
		if config, err = readConfig(o.ConfigFile); err != nil {
			return err
		}
	}
	words := train.Vocabulary{
		Setting: func(o *train.Options, name string) train.Setting { return find(trainTable(o), name).value },
		Preset:  func(name string) (map[string]string, error) { return readPreset(name) },
	}
	return o.Resolve(words, config, given)
}

// printSettings prints every setting as a configuration file that makes the same. said is what follows a capture.
func printSettings(console *cli.Console, o *train.Options, said string) {
	console.Printf("# vksplat %s: vksplat train SCENE -m OUT --config FILE\n", cli.Version())
	if o.ConfigFile != "" {
		console.Printf("# from %s\n", o.ConfigFile)
	} else {
		console.Printf("# from preset %s\n", o.Preset)
	}
	if said != "" {
		console.Printf("# %s\n", said)
	}
	done := *o
	if o.StepsScaler != 1 {
		console.Printf("# numbers of steps are multiplied by %g already\n", o.StepsScaler)
		done.StepsScaler = 1
		done.IterationsFactor *= o.StepsScaler
	}
	done.Preset = ""
	for _, g := range trainTable(&done) {
		console.Printf("\n# %s\n", g.title)
		last := recipe.FromDefault.Name
		for i := range g.options {
			opt := &g.options[i]
			line, from := opt.tomlLine(), o.From(opt.name)
			switch {
			case opt.flag || line == "":
				continue
			case opt.name == "background" && !o.BackgroundChosen(): // chosen by the kind of capture
				line = "# " + line
			}
			if from != last {
				console.Printf("# from %s\n", from)
			}
			console.Printf("%s", line)
			last = from
		}
	}
}
