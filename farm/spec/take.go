package spec

import (
	"fmt"
	"maps"
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

// take checks the tree and fills the job from it.
func (j *Job) take() error {
	r := &reader{j}
	t, err := r.table(nil, j.tree, jobFields)
	if err != nil {
		return err
	}
	j.Version, j.Name = int(t["version"].(int64)), t["name"].(string)
	j.Priority, j.Pool = word(t, "priority", DefaultPriority), word(t, "pool", DefaultPool)
	store := tableOf(t, "store")
	j.Store = Store{word(store, "inputs", DefaultInputs), word(store, "outputs", DefaultOutputs)}
	j.Retry, j.Limits, j.Pin = defaultRetry.with(tableOf(t, "retry")), defaultLimits.with(tableOf(t, "limits")),
		Pin{}.with(tableOf(t, "pin"))
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
	s := &TaskSpec{ID: word(t, "id", ""), Kind: k, Needs: words(t, "needs"), Pool: word(t, "pool", r.Pool),
		Priority: word(t, "priority", r.Priority),
		Retry:    r.Retry.with(tableOf(t, "retry")), Limits: r.Limits.with(tableOf(t, "limits")),
		Pin: r.Pin.with(tableOf(t, "pin")), Matrix: axes,
		fields: maps.Clone(t)}
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
	set := tableOf(t, "set")
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

// The functions below read values that have been checked.

func tableOf(t map[string]any, key string) map[string]any {
	v, _ := t[key].(map[string]any)
	return v
}

func word(t map[string]any, key, otherwise string) string {
	if s, given := t[key].(string); given {
		return s
	}
	return otherwise
}

func words(t map[string]any, key string) (list []string) {
	values, _ := t[key].([]any)
	for _, v := range values {
		if s, isText := v.(string); isText {
			list = append(list, s)
		}
	}
	return list
}

func whole(t map[string]any, key string, otherwise int) int {
	if n, given := t[key].(int64); given {
		return int(n)
	}
	return otherwise
}

func spanOf(t map[string]any, key string, otherwise time.Duration) time.Duration {
	s, given := t[key].(string)
	if !given {
		return otherwise
	}
	d, err := span(s)
	if err != nil {
		return otherwise
	}
	return d
}

func (r Retry) with(t map[string]any) Retry {
	r.MaxAttempts = whole(t, "max_attempts", r.MaxAttempts)
	r.Backoff, r.BackoffMax = spanOf(t, "backoff", r.Backoff), spanOf(t, "backoff_max", r.BackoffMax)
	if v, given := t["keep_going"].(bool); given {
		r.KeepGoing = v
	}
	return r
}

func (l Limits) with(t map[string]any) Limits {
	l.TaskTimeout = spanOf(t, "task_timeout", l.TaskTimeout) // lease is read and means nothing any more
	l.StallTimeout, l.CheckpointEvery = spanOf(t, "stall_timeout", l.StallTimeout),
		spanOf(t, "checkpoint_every", l.CheckpointEvery)
	l.VRAMMinMB, l.DiskMinGB = whole(t, "vram_min_mb", l.VRAMMinMB), whole(t, "disk_min_gb", l.DiskMinGB)
	return l
}

func (p Pin) with(t map[string]any) Pin {
	return Pin{word(t, "device", p.Device), word(t, "driver", p.Driver)}
}
