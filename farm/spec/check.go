package spec

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// removed are flags and settings that train and capture once had, with hints.
var removed = map[string]string{
	"force": "leave it out; vksplat train has " + fault.Setting("accept-changes") + " and " +
		fault.Setting("overwrite") + " in its place, and a job's results are made again by " +
		fault.Command("farm run --redo"),
	"vocab_tree": ofColmap, "features": ofColmap, "loops": ofColmap, "gpu": "leave it out; COLMAP uses a GPU that it can",
	"clearance": "use carve, which removes the splats that clearance hid; 0 turns it off",
}

const ofColmap = "leave it out; what only COLMAP has is set in COLMAP itself, whose model train reads"

// unknown is the error of a key that is none of fields.
func (j *Job) unknown(at path, key string, fields []field) error {
	hint := removed[key]
	if hint == "" {
		otherwise := "give " + wording.Or(names(fields))
		if fields[len(fields)-1].Set {
			otherwise = "settings for files, devices and display belong to the worker; " +
				fault.Command("train --print-config") + " lists the others"
		}
		hint = didYouMean(key, names(fields), otherwise)
	}
	return j.wrong(at, hint, "unknown key %.60q", key)
}

// table checks all keys of a table. Those that a matrix gives are not missing.
func (j *Job) table(at path, t map[string]any, fields []field, given map[string]bool) error {
	found := map[*field]bool{}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		f := find(fields, key)
		switch {
		case f == nil:
			return j.unknown(at.add(key), key, fields)
		case found[f]:
			return j.wrong(at.add(key), "keep one of the two", "%s is set already, by another name", f.flag)
		}
		found[f] = true
		if err := j.value(at.add(key), t[key], f); err != nil {
			return err
		}
	}
	for i := range fields {
		if f := &fields[i]; f.required && !found[f] && !given[f.Name] {
			use := f.Help
			if f.Min != 0 && f.Min == f.Max {
				use = fmt.Sprintf("use %s = %v", f.Name, f.Min)
			}
			return j.wrong(at, "add it: docs/farm-jobs.md has an example", "missing key %q (%s)", f.Name, use)
		}
	}
	return nil
}

// value checks one value.
func (j *Job) value(at path, v any, f *field) error {
	text, isText := v.(string)
	if f.Set && f.Seed && isText {
		if _, err := strconv.ParseUint(text, 10, 64); err == nil {
			return nil
		}
	}
	if f.Set && f.Type == typeText && isLoose(v) {
		v = joined(v, ",")
	}
	want, got := cmp.Or(wants[f.Type], aText), treeName(v)
	if want != got && (want != aNumber || got != aWhole && got != aFraction) {
		return j.wrong(at, "docs/farm-jobs.md lists all keys, and docs/train.md those of set", "expected %s, got %s",
			want, got)
	}
	switch x := v.(type) {
	case int64:
		return j.number(at, float64(x), f)
	case float64:
		return j.number(at, x, f)
	case string:
		return j.checkText(at, x, f)
	case []any:
		return j.list(at, x, f)
	case map[string]any:
		if f.Type == typeTable {
			return j.table(at, x, f.fields, nil)
		}
	}
	return nil // a matrix, which axes checks, or true or false
}

// isLoose says whether a value is what configuration files may give for a text: a number, or a list of numbers.
func isLoose(v any) bool {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	return len(list) <= maxSettingList && !slices.ContainsFunc(list, func(v any) bool {
		name := treeName(v)
		return name != aWhole && name != aFraction
	})
}

// What values of a document are called.
const (
	aTable    = "a table"
	aList     = "a list"
	aText     = "a text"
	aBool     = "true or false"
	aWhole    = "a whole number"
	aFraction = "a number with a fraction"
	aNumber   = "a number" // one of both
)

// treeName is what a value of a document is called.
func treeName(v any) string {
	switch v.(type) {
	case int64:
		return aWhole
	case float64:
		return aFraction
	case bool:
		return aBool
	case string:
		return aText
	case []any:
		return aList
	}
	return aTable
}

// wants says what values of a type should be, where that is no text.
var wants = map[string]string{typeInt: aWhole, typeFloat: aNumber, typeBool: aBool, typeTable: aTable,
	typeMatrix: aTable, typeTables: aList, typeInts: aList, typeFloats: aList, typeInputs: aList, typeNames: aList}

// number checks bounds. Those of settings the command knows.
func (j *Job) number(at path, x float64, f *field) error {
	switch {
	case f.Set || f.Min == 0 && f.Max == 0:
		return nil
	case x != f.Min && f.Min == f.Max:
		return j.wrong(at, "a newer vksplat may know it", "%v is not supported, only %v is", x, f.Min)
	case x < f.Min || x > f.Max:
		return j.wrong(at, "", "%v is out of range, %v to %v are allowed", x, f.Min, f.Max)
	}
	return nil
}

// list checks a list and its elements.
func (j *Job) list(at path, list []any, f *field) error {
	switch {
	case f.Count > 0 && len(list) != f.Count:
		return j.wrong(at, "", "expected %d numbers, got %d", f.Count, len(list))
	case f.Count == 0 && (len(list) == 0 && !f.Set || len(list) > f.most):
		return j.wrong(at, "", "the list has %d elements, 1 to %d are allowed", len(list), f.most)
	case f.Type == typeTables:
		return nil // read checks them
	}
	element := *f
	element.Type = elements[f.Type]
	seen := map[any]bool{}
	for i, x := range list {
		if err := j.value(at.index(i), x, &element); err != nil {
			return err
		}
		if f.Count == 0 && !f.Set && seen[x] {
			return j.wrong(at, "give each once", "%v occurs twice", x)
		}
		seen[x] = true
	}
	return nil
}

// trajectories are the words of typeCamera.
var trajectories = option("render", "trajectory").Words

func (j *Job) checkText(at path, s string, f *field) (err error) {
	switch f.Type {
	case typeName:
		if why, hint := badName(s); why != "" {
			return j.wrong(at, hint, "%s", why)
		}
	case typeWord:
		if !wordForm.MatchString(s) {
			return j.wrong(at, "names look like gpu24; "+fault.Setting("roots")+
				" says which folder a root is", "%.80q is not a valid name", s)
		}
	case typeSpan:
		if _, err = span(s); err != nil {
			return j.wrong(at, "as in 30s, 10m or 6h", "%w", err)
		}
	case typeFrames:
		if _, err = ParseFrames(s); err != nil {
			return j.wrong(at, "as in 0-2399, or 1001-1100x2 for every second", "%w", err)
		}
	case typeInput, typeCamera, typeFolder:
		return j.checkInput(at, s, f.Type)
	default:
		if len(f.Words) > 0 && !slices.Contains(f.Words, s) {
			return j.wrong(at, didYouMean(s, f.Words, "give "+wording.Or(f.Words)), "%.60q is not one of %s", s,
				strings.Join(f.Words, ", "))
		}
		if utf8.RuneCountInString(s) > maxText || !textForm.MatchString(s) {
			return j.wrong(at, "files cannot be named here",
				"%.60q is too long, or has characters that are not allowed", s)
		}
	}
	return nil
}

// input checks a key, or a reference where one is possible.
func (j *Job) checkInput(at path, s, kind string) error {
	if id, isRef := strings.CutPrefix(s, "@"); isRef && kind == typeInput {
		if why, _ := badName(id); why != "" {
			return j.wrong(at, "@ and the id of a task, as in @garden", "%.80q names no task", s)
		}
		return nil
	}
	if kind == typeCamera && slices.Contains(trajectories, s) {
		return nil
	}
	err := CheckKey(s)
	if filepath.IsAbs(s) {
		err = fmt.Errorf("inputs must be relative paths, not %.80q", s)
	}
	if err != nil {
		return j.wrong(at, "give the path from the root of inputs (farm run: the job's folder)", "%w", err)
	}
	return nil
}

// didYouMean returns a hint for a word that is none of known: the nearest of them, else otherwise.
func didYouMean(word string, known []string, otherwise string) string {
	if near := wording.Nearest(strings.ToLower(strings.ReplaceAll(word, "-", "_")), known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return otherwise
}
