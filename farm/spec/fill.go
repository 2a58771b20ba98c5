package spec

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// listOf gives the elements of a list that are of a type.
func listOf[T any](v any) (list []T) {
	values, _ := v.([]any)
	for _, x := range values {
		if is, ok := x.(T); ok {
			list = append(list, is)
		}
	}
	return list
}

// fill makes the tasks of a written task.
func (p *planner) fill(e *expanded) error {
	var needs []int
	for _, id := range e.Needs {
		from := p.byID[id]
		for k := range len(from.variants) * from.per {
			needs = append(needs, from.first+k)
		}
	}
	for k := range e.variants {
		if err := p.fillVariant(e, &e.variants[k], needs, e.first+k*e.per); err != nil {
			return err
		}
	}
	return nil
}

// fillVariant makes the tasks of one variant, from first on. They wait for what they read, and for needs.
func (p *planner) fillVariant(e *expanded, v *variant, needs []int, first int) error {
	t := Task{ID: e.ID, Kind: e.Kind, Pool: e.Pool, Priority: e.Priority, Retry: e.Retry, Limits: e.Limits, Pin: e.Pin,
		Name: e.ID}
	if v.label != "" {
		t.Name += "/" + v.label
	}
	if err := p.need(&t, needs, 0); err != nil {
		return err
	}
	for i := range e.Kind.fields {
		f := &e.Kind.fields[i]
		if value := e.field(v, f.Name); value != nil {
			if err := p.apply(e, v, &t, f, value); err != nil {
				return err
			}
		}
	}
	if e.Kind.inputs != nil {
		if err := e.Kind.inputs(p, e, v, &t); err != nil {
			return err
		}
	}
	if e.Kind.Trains {
		t.Flags = append(t.Flags, e.training(v)...)
	}
	if err := p.need(&t, nil, (e.per-1)*len(t.Needs)); err != nil {
		return err
	}
	tasks := p.plan.Tasks[first : first+e.per]
	for n := range tasks {
		tasks[n] = t
		tasks[n].Index = first + n
		tasks[n].Needs = slices.Clone(t.Needs)
	}
	if e.Kind.fill != nil {
		if err := e.Kind.fill(p, e, v, tasks); err != nil {
			return err
		}
	}
	for n := range tasks {
		slices.Sort(tasks[n].Needs)
		tasks[n].Needs = slices.Compact(tasks[n].Needs)
	}
	return nil
}

// apply sets what a key means to a task: something to read, or a flag of its command.
func (p *planner) apply(e *expanded, v *variant, t *Task, f *field, value any) (err error) {
	at := path{"task", e.at, f.Name}
	text, _ := value.(string)
	switch {
	case f.Name == "model":
		return p.model(at, v, text, t)
	case f.Type == typeInputs:
		for i, m := range listOf[string](value) {
			if err := p.model(at.index(i), v, m, t); err != nil {
				return err
			}
		}
	case f.Type == typeInput:
		to := map[string]*Input{"cameras": &t.Cameras, "masks": &t.Masks, "source": &t.Source}[f.Name]
		*to, err = p.input(at, v, text, e.Kind.Takes, t)
	case f.Type == typeCamera && !slices.Contains(trajectories, text):
		t.Trajectory = Input{Key: text}
	case f.Type == typeCamera:
		t.Flags = append(t.Flags, Flag{"trajectory", text})
	case f.flag != "":
		t.Flags = append(t.Flags, f.with(value))
	}
	return err
}

// input resolves a key, or a reference to a task that makes what is wanted. t waits for the tasks.
func (p *planner) input(at path, v *variant, text, want string, t *Task) (Input, error) {
	id, isRef := strings.CutPrefix(text, "@")
	if !isRef {
		return Input{Key: text}, nil
	}
	from := p.byID[id]
	if got := from.Kind.Makes; want != got {
		return Input{}, p.wrong(at, "name a task that makes "+want, "%s is needed, but %s makes %s", want, id, got)
	}
	fits, err := p.matching(at, from, v.binds)
	if err != nil {
		return Input{}, err
	}
	var in Input
	for _, k := range fits {
		first := from.first + k*from.per
		if from.Kind.Parts {
			for n := range from.per {
				in.Tasks = append(in.Tasks, first+n)
			}
		} else { // of blocks, the merge
			in.Tasks = append(in.Tasks, first+from.per-1)
		}
	}
	if len(in.Tasks) == 0 {
		return in, p.wrong(at, "take inputs that go back to the same tasks", "no variant of %s belongs to this one", id)
	}
	return in, p.need(t, in.Tasks, 0)
}

// model adds the models that a text names.
func (p *planner) model(at path, v *variant, text string, t *Task) error {
	in, err := p.input(at, v, text, "a model", t)
	if err != nil {
		return err
	}
	if in.Key != "" {
		t.Models = append(t.Models, Model{Input: in})
		return nil
	}
	for _, k := range in.Tasks {
		from := &p.plan.Tasks[k]
		m := Model{Input: Input{Tasks: []int{k}}, Source: from.Source}
		if m.Source.None() && len(from.Models) > 0 { // it was made of another model
			m.Source = from.Models[0].Source
		}
		t.Models = append(t.Models, m)
	}
	return nil
}

// with returns the option's flag with a value.
func (f *field) with(value any) Flag {
	if f.Name == "size" {
		return Flag{f.flag, joined(value, "x")}
	}
	return Flag{f.flag, joined(value, ",")}
}

// training are train's settings in a variant: those of set, and of the matrix.
func (e *expanded) training(v *variant) (flags []Flag) {
	values := map[string]any{}
	set, _ := e.fields["set"].(map[string]any)
	maps.Copy(values, set)
	for key, value := range v.values {
		if find(e.Kind.fields, key) == nil {
			values[key] = value
		}
	}
	for key, value := range values {
		flags = append(flags, find(settings, key).with(value))
	}
	slices.SortFunc(flags, func(a, b Flag) int { return cmp.Compare(a.Name, b.Name) })
	return flags
}
