package spec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"vksplat/internal/wording"
)

// Defaults of what documents leave out.
const (
	DefaultPriority = "normal"
	DefaultPool     = "any"
	DefaultInputs   = "inputs"
	DefaultOutputs  = "outputs"
)

var defaultRetry = Retry{MaxAttempts: 4, Backoff: 10 * time.Second, BackoffMax: 10 * time.Minute, KeepGoing: true}

var defaultLimits = Limits{StallTimeout: 10 * time.Minute, CheckpointEvery: 10 * time.Minute}

// read checks the tree and fills the job from it.
func (j *Job) read() error {
	r := &reader{j}
	t, err := r.table(nil, j.tree, jobFields)
	if err != nil {
		return err
	}
	j.Priority, j.Pool, j.Store = DefaultPriority, DefaultPool, Store{DefaultInputs, DefaultOutputs}
	j.Retry, j.Limits = defaultRetry, defaultLimits
	fill(j, t)
	list, isList := t["task"].([]any)
	switch {
	case !isList:
		return r.needs(path{"task"}, t["task"], "a list of tables")
	case len(list) == 0 || len(list) > maxWritten:
		return r.wrong(path{"task"}, "", "there are %d tasks, 1 to %d can be written", len(list), maxWritten)
	}
	for i, v := range list {
		s, err := r.task(path{"task", i}, v)
		if err != nil {
			return err
		}
		s.at = i
		j.Tasks = append(j.Tasks, *s)
	}
	return j.nameTasks()
}

// task reads a [[task]].
func (r *reader) task(at path, v any) (*TaskSpec, error) {
	t, isTable := v.(map[string]any)
	if !isTable {
		return nil, r.needs(at, v, "a table")
	}
	kind, isText := t["kind"].(string)
	k := kindOf(kind)
	switch {
	case t["kind"] == nil:
		return nil, r.wrong(at, "add kind = "+wording.Or(writtenKinds()), `missing key "kind"`)
	case !isText:
		return nil, r.needs(at.add("kind"), t["kind"], "a text")
	case k != nil && k.instead != "":
		return nil, r.wrong(at.add("kind"), k.instead, "a task of kind %s cannot be written in a job", kind)
	case k == nil:
		return nil, r.wrong(at.add("kind"), didYouMean(kind, writtenKinds(), "give "+wording.Or(writtenKinds())),
			"there is no kind %.60q", kind)
	}
	axes, given, err := r.axes(at.add("matrix"), t, k)
	if err != nil {
		return nil, err
	}
	fields := slices.Clone(k.fields)
	for i := range fields { // what the matrix gives is not missing
		fields[i].required = fields[i].required && !given[fields[i].key]
	}
	if _, err := r.table(at, t, append(slices.Clone(commonFields), fields...)); err != nil {
		return nil, err
	}
	s := &TaskSpec{Kind: k, Pool: r.Pool, Priority: r.Priority, Retry: r.Retry, Limits: r.Limits, Pin: r.Pin,
		Matrix: axes, fields: maps.Clone(t)}
	fill(s, t)
	for _, f := range commonFields {
		delete(s.fields, f.key)
	}
	return s, nil
}

// axes reads a matrix. Given has the keys of the kind's own fields among them.
func (r *reader) axes(at path, t map[string]any, k *Kind) (axes []Axis, given map[string]bool, err error) {
	given = map[string]bool{}
	v, there := t["matrix"]
	if !there {
		return nil, given, nil
	}
	m, isTable := v.(map[string]any)
	if !isTable || len(m) == 0 {
		return nil, nil, r.wrong(at, `as in: matrix.sh_degree = [2, 3]`, "a table of lists is needed")
	}
	set, _ := t["set"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list, isList := m[key].([]any)
		if !isList || len(list) == 0 {
			return nil, nil, r.wrong(at.add(key), "", "a list of values is needed")
		}
		i := slices.IndexFunc(k.fields, func(f field) bool { return f.key == key })
		_, twice := t[key]
		check := func(at path, v any) error {
			_, err := r.setting(at, key, v)
			return err
		}
		switch {
		case i >= 0 && k.fields[i].kind != typeSettings:
			check = func(at path, v any) error { return r.value(at, v, &k.fields[i]) }
		case !hasSettings(k):
			return nil, nil, r.unknown(at.add(key), key, ownKeys(k),
				"give one of the keys of a "+k.Name+" task: "+wording.Or(ownKeys(k)))
		default:
			for other := range set {
				twice = twice || settingOf(other) != nil && settingOf(other) == settingOf(key)
			}
		}
		if twice {
			return nil, nil, r.wrong(at.add(key), "leave one of them out",
				"the task gives %s outside of its matrix, too", key)
		}
		seen := map[string]bool{}
		for n, value := range list {
			if err := check(at.add(key).index(n), value); err != nil {
				return nil, nil, err
			}
			if text := labelOf(value); seen[text] {
				return nil, nil, r.wrong(at.add(key), "give each value once", "%s occurs twice", text)
			} else {
				seen[text] = true
			}
		}
		given[key] = true
		axes = append(axes, Axis{key, list})
	}
	return axes, given, nil
}

func hasSettings(k *Kind) bool {
	return slices.ContainsFunc(k.fields, func(f field) bool { return f.kind == typeSettings })
}

// ownKeys are the keys that a matrix of this kind may have, without train's settings.
func ownKeys(k *Kind) (keys []string) {
	for _, f := range k.fields {
		if f.kind != typeSettings {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// nameTasks gives tasks without an id one, and refuses ids that are there twice.
func (j *Job) nameTasks() error {
	taken := map[string]int{}
	for i := range j.Tasks {
		s := &j.Tasks[i]
		if s.ID == "" {
			continue
		}
		if other, twice := taken[fold(s.ID)]; twice {
			return j.wrong(path{"task", i, "id"},
				"folders are named after ids, and some file systems ignore case",
				"id %q is also that of task %d", s.ID, other+1)
		}
		taken[fold(s.ID)] = i
	}
	for i := range j.Tasks {
		s := &j.Tasks[i]
		for n := 1; s.ID == ""; n++ {
			id := s.Kind.Name
			if n > 1 {
				id = fmt.Sprintf("%s-%d", s.Kind, n)
			}
			if _, used := taken[id]; !used {
				s.ID, taken[id] = id, i
			}
		}
	}
	return nil
}

// fill sets the fields of a struct whose tags name keys of a table. The table has been checked.
func fill(into any, t map[string]any) {
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		value, given := t[v.Type().Field(i).Tag.Get("key")]
		if !given {
			continue
		}
		switch p := v.Field(i).Addr().Interface().(type) {
		case *int:
			*p = int(value.(int64))
		case *bool:
			*p = value.(bool)
		case *string:
			*p = value.(string)
		case *[]string:
			*p = words(value)
		case *time.Duration:
			*p, _ = span(value.(string))
		default:
			fill(p, value.(map[string]any))
		}
	}
}

// words are the texts of a list.
func words(v any) (list []string) {
	values, _ := v.([]any)
	for _, x := range values {
		if s, isText := x.(string); isText {
			list = append(list, s)
		}
	}
	return list
}
