package spec

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// reader checks values of a document against the tables of fields.
type reader struct{ *Job }

// unknown is the error of a key that means nothing.
func (r *reader) unknown(at path, key string, known []string, otherwise string) error {
	if key == "force" { // a flag of train once
		return r.wrong(at, "leave it out; vksplat train has "+fault.Setting("accept-changes")+" and "+
			fault.Setting("overwrite")+" in its place, and a job's results are made anew by "+
			fault.Command("farm run --redo"), "unknown key %q", key)
	}
	if key == "clearance" { // a setting of train once
		return r.wrong(at, "use carve, which removes the splats that clearance hid; 0 turns it off", "unknown key %q",
			key)
	}
	return r.wrong(at, didYouMean(key, known, otherwise), "unknown key %.60q", key)
}

// table checks all keys of a table.
func (r *reader) table(at path, value any, fields []field) (map[string]any, error) {
	t, isTable := value.(map[string]any)
	if !isTable {
		return nil, r.wrong(at, "as in docs/farm-jobs.md", "expected a table, got %s", treeName(value))
	}
	for _, key := range slices.Sorted(maps.Keys(t)) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if i < 0 {
			var known []string
			for _, f := range fields {
				known = append(known, f.key)
			}
			return nil, r.unknown(at.add(key), key, known, "give "+wording.Or(known))
		}
		if err := r.value(at.add(key), t[key], &fields[i]); err != nil {
			return nil, err
		}
	}
	for _, f := range fields {
		if _, given := t[f.key]; f.required && !given {
			use := f.help
			if f.min != 0 && f.min == f.max {
				use = fmt.Sprintf("use %s = %v", f.key, f.min)
			}
			return nil, r.wrong(at, "add it: docs/farm-jobs.md has an example", "missing key %q (%s)", f.key, use)
		}
	}
	return t, nil
}

// value checks one value.
func (r *reader) value(at path, v any, f *field) error {
	switch f.kind {
	case typeInt, typeFloat:
		return r.number(at, v, f)
	case typeBool:
		if _, is := v.(bool); !is {
			return r.needs(at, v, "true or false")
		}
		return nil
	case typeTable:
		_, err := r.table(at, v, f.fields)
		return err
	case typeSettings:
		return r.settings(at, v)
	case typeList, typeMatrix:
		return nil // Job.read and axes look at these
	case typeInts, typeFloats, typeInputs, typeTask:
		return r.list(at, v, f)
	}
	text, isText := v.(string)
	if !isText {
		return r.needs(at, v, "a text")
	}
	return r.text(at, text, f)
}

func (r *reader) needs(at path, v any, want string) error {
	return r.wrong(at, "docs/farm-jobs.md lists all keys", "expected %s, got %s", want, treeName(v))
}

func (r *reader) number(at path, v any, f *field) error {
	var x float64
	switch n := v.(type) {
	case int64:
		x = float64(n)
	case float64:
		if f.kind == typeInt || f.kind == typeInts {
			return r.needs(at, v, "a whole number")
		}
		x = n
	default:
		return r.needs(at, v, "a number")
	}
	if x != f.min && f.min == f.max {
		return r.wrong(at, "a newer vksplat may know it", "%v is not supported, only %v is", v, f.min)
	}
	if x < f.min || x > f.max {
		return r.wrong(at, "", "%v is out of range, %v to %v are allowed", v, f.min, f.max)
	}
	return nil
}

// list checks a list and its elements.
func (r *reader) list(at path, v any, f *field) error {
	list, isList := v.([]any)
	switch {
	case !isList:
		return r.needs(at, v, "a list")
	case f.count > 0 && len(list) != f.count:
		return r.wrong(at, "", "expected %d numbers, got %d", f.count, len(list))
	case f.count == 0 && (len(list) == 0 || len(list) > f.most):
		return r.wrong(at, "", "the list has %d elements, 1 to %d are allowed", len(list), f.most)
	}
	seen := map[any]bool{}
	for i, x := range list {
		if f.kind == typeInts || f.kind == typeFloats {
			if err := r.number(at.index(i), x, f); err != nil {
				return err
			}
		} else {
			text, isText := x.(string)
			if !isText {
				return r.needs(at.index(i), x, "a text")
			}
			element := field{kind: typeInput}
			if f.kind == typeTask {
				element.kind = typeName
			}
			if err := r.text(at.index(i), text, &element); err != nil {
				return err
			}
		}
		if f.count == 0 && seen[x] {
			return r.wrong(at, "give each once", "%v occurs twice", x)
		}
		seen[x] = true
	}
	return nil
}

// trajectories are the words of typeCamera.
var trajectories = option("render", "trajectory").words

func (r *reader) text(at path, s string, f *field) error {
	var err error
	switch f.kind {
	case typeName:
		if why, hint := badName(s); why != "" {
			return r.wrong(at, hint, "%s", why)
		}
	case typeWord:
		if !wordRegexp.MatchString(s) {
			return r.wrong(at, "names look like gpu24; "+fault.Setting("roots")+
				" says which folder a root is", "%.80q is not a valid name", s)
		}
	case typeSpan:
		_, err = span(s)
		if err != nil {
			return r.wrong(at, "as in 30s, 10m or 6h", "%w", err)
		}
	case typeFrames:
		if _, err = ParseFrames(s); err != nil {
			return r.wrong(at, "as in 0-2399, or 1001-1100x2 for every second", "%w", err)
		}
	case typeInput, typeCamera, typeKey:
		return r.input(at, s, f.kind)
	default:
		if len(f.words) > 0 && !slices.Contains(f.words, s) {
			return r.wrong(at, didYouMean(s, f.words, "give "+wording.Or(f.words)), "%.60q is not one of %s", s,
				strings.Join(f.words, ", "))
		}
		if !isText(s) {
			return r.wrong(at, "", "%.60q is too long, or has characters that are not allowed", s)
		}
	}
	return nil
}

// input checks a key, or a reference where one is possible.
func (r *reader) input(at path, s string, kind fieldType) error {
	if id, isRef := strings.CutPrefix(s, "@"); isRef && kind == typeInput {
		if why, _ := badName(id); why != "" {
			return r.wrong(at, "@ and the id of a task, as in @garden", "%.80q names no task", s)
		}
		return nil
	}
	if kind == typeCamera && slices.Contains(trajectories, s) {
		return nil
	}
	if utf8.RuneCountInString(s) > maxKey {
		s = s[:maxKey+1]
	}
	err := CheckKey(s)
	if filepath.IsAbs(s) {
		err = fmt.Errorf("inputs must be relative paths, not %.80q", s)
	}
	if err != nil {
		return r.wrong(at, "give the path from the root of inputs (farm run: the job's folder)", "%w", err)
	}
	return nil
}

// settings checks a table of train's settings.
func (r *reader) settings(at path, v any) error {
	t, isTable := v.(map[string]any)
	if !isTable {
		return r.needs(at, v, "a table")
	}
	_, err := r.flagsOf(at, t)
	return err
}

// flagsOf returns the flags for a table of settings, by name.
func (r *reader) flagsOf(at path, t map[string]any) ([]Flag, error) {
	var flags []Flag
	for _, key := range slices.Sorted(maps.Keys(t)) {
		f, err := r.setting(at.add(key), key, t[key])
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(flags, func(other Flag) bool { return other.Name == f.Name }) {
			return nil, r.wrong(at.add(key), "keep one of the two", "%s is set already, by another name", f.Name)
		}
		flags = append(flags, f)
	}
	slices.SortFunc(flags, func(a, b Flag) int { return cmp.Compare(a.Name, b.Name) })
	return flags, nil
}
