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
	if err := j.table(nil, j.tree, jobFields, nil); err != nil {
		return err
	}
	j.Priority, j.Pool, j.Store = DefaultPriority, DefaultPool, Store{DefaultInputs, DefaultOutputs}
	j.Retry, j.Limits = defaultRetry, defaultLimits
	fill(j, j.tree)
	for i, v := range j.tree["task"].([]any) {
		s, err := j.task(path{"task", i}, v)
		if err != nil {
			return err
		}
		s.at = i
		j.Tasks = append(j.Tasks, *s)
	}
	return j.nameTasks()
}

// task reads a [[task]].
func (j *Job) task(at path, v any) (*TaskSpec, error) {
	t, isTable := v.(map[string]any)
	kind, isText := t["kind"].(string)
	k := kindOf(kind)
	switch {
	case !isTable:
		return nil, j.value(at, v, &field{Option: Option{Type: typeTable}})
	case t["kind"] == nil:
		return nil, j.wrong(at, "add kind = "+wording.Or(writtenKinds()), `missing key "kind"`)
	case !isText:
		return nil, j.value(at.add("kind"), t["kind"], &commonFields[0])
	case k == nil:
		return nil, j.wrong(at.add("kind"), didYouMean(kind, writtenKinds(), "give "+wording.Or(writtenKinds())),
			"there is no kind %.60q", kind)
	case k.instead != "":
		return nil, j.wrong(at.add("kind"), k.instead, "a task of kind %s cannot be written in a job", kind)
	}
	axes, given, err := j.axes(at.add("matrix"), t, k)
	if err != nil {
		return nil, err
	}
	if err := j.table(at, t, slices.Concat(commonFields, k.fields), given); err != nil {
		return nil, err
	}
	s := &TaskSpec{Kind: k, Pool: j.Pool, Priority: j.Priority, Retry: j.Retry, Limits: j.Limits, Pin: j.Pin,
		Matrix: axes, fields: maps.Clone(t)}
	fill(s, t)
	for _, f := range commonFields {
		delete(s.fields, f.Name)
	}
	return s, nil
}

// axes reads a matrix. Given has the keys of the task and its matrix, and those of set as in set.seed.
func (j *Job) axes(at path, t map[string]any, k *Kind) (axes []Axis, given map[string]bool, err error) {
	given = map[string]bool{}
	for key := range t {
		given[key] = true
	}
	set, _ := t["set"].(map[string]any)
	for key := range set {
		if f := find(settings, key); f != nil {
			given["set."+f.Name] = true
		}
	}
	m, _ := t["matrix"].(map[string]any)
	if given["matrix"] && len(m) == 0 {
		return nil, nil, j.wrong(at, `as in: matrix.sh_degree = [2, 3]`, "a table of lists is needed")
	}
	fields := k.axes()
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list, isList := m[key].([]any)
		f := find(fields, key)
		if f == nil {
			return nil, nil, j.unknown(at.add(key), key, fields)
		}
		name := f.Name
		if f.Set {
			name = "set." + name
		}
		switch {
		case given[name]:
			return nil, nil, j.wrong(at.add(key), "leave one of them out", "the task gives %s twice", name)
		case !isList || len(list) == 0:
			return nil, nil, j.wrong(at.add(key), "", "a list of values is needed")
		}
		seen := map[string]bool{}
		for n, value := range list {
			if err := j.value(at.add(key).index(n), value, f); err != nil {
				return nil, nil, err
			}
			text := joined(value, "x")
			if seen[text] {
				return nil, nil, j.wrong(at.add(key), "give each value once", "%s occurs twice", text)
			}
			seen[text] = true
		}
		given[name] = true
		axes = append(axes, Axis{key, list})
	}
	return axes, given, nil
}

// axes are the keys that a matrix of this kind may have: its own, and train's settings in place of their table.
func (k *Kind) axes() []field {
	fields := slices.Clone(k.fields)
	if at := slices.IndexFunc(fields, func(f field) bool { return f.Type == typeTable }); at >= 0 {
		fields = append(slices.Delete(fields, at, at+1), settings...)
	}
	return fields
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
			*p = listOf[string](value)
		case *time.Duration:
			*p, _ = span(value.(string))
		default:
			fill(p, value.(map[string]any))
		}
	}
}
