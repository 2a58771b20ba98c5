package spec

import (
	"slices"
	"strings"
)

// intsOf reads a list of whole numbers.
func intsOf(v any) (list []int) {
	values, _ := v.([]any)
	for _, x := range values {
		if n, isInt := x.(int64); isInt {
			list = append(list, int(n))
		}
	}
	return list
}

// fill makes the tasks of a written task.
func (p *planner) fill(i int) error {
	e := &p.specs[i]
	var needs []int
	for _, id := range e.Needs {
		from := &p.specs[p.byID[id]]
		for k := range len(from.variants) * from.per {
			needs = append(needs, from.first+k)
		}
	}
	for k := range e.variants {
		if err := p.fillVariant(e, k, needs); err != nil {
			return err
		}
	}
	return nil
}

// fillVariant makes the tasks of one variant.
func (p *planner) fillVariant(e *expanded, k int, needs []int) error {
	v := &e.variants[k]
	t := Task{ID: e.ID, Kind: e.Kind, Pool: e.Pool, Priority: e.Priority, Retry: e.Retry, Limits: e.Limits, Pin: e.Pin,
		Name: e.ID}
	if v.label != "" {
		t.Name += "/" + v.label
	}
	if err := p.inputs(e, v, &t, needs); err != nil {
		return err
	}
	flags, err := p.flags(e, v)
	if err != nil {
		return err
	}
	t.Flags = flags
	tasks := p.plan.Tasks[e.first+k*e.per : e.first+(k+1)*e.per]
	if err := p.need(&t, nil, (len(tasks)-1)*len(t.Needs)); err != nil {
		return err
	}
	for n := range tasks {
		tasks[n] = t
		tasks[n].Index = e.first + k*e.per + n
		tasks[n].Needs = slices.Clone(t.Needs)
	}
	if e.Kind.fill != nil {
		if err := e.Kind.fill(p, e, v, tasks); err != nil {
			return err
		}
	}
	for n := range tasks {
		tasks[n].settle()
	}
	return nil
}

// inputs fills in what a task reads, and that it waits for it and for needs.
func (p *planner) inputs(e *expanded, v *variant, t *Task, needs []int) error {
	if err := p.need(t, needs, 0); err != nil {
		return err
	}
	for _, f := range e.Kind.fields {
		value := e.field(v, f.key)
		if value == nil {
			continue
		}
		at := path{"task", e.at, f.key}
		switch {
		case f.kind == typeInput && f.key == "model":
			if err := p.model(at, v, value.(string), t); err != nil {
				return err
			}
		case f.kind == typeInput:
			in, err := p.input(at, v, value.(string), e.Kind.Takes, t)
			if err != nil {
				return err
			}
			switch f.key {
			case "cameras":
				t.Cameras = in
			case "masks":
				t.Masks = in
			case "vocab_tree":
				t.VocabTree = in
			default:
				t.Source = in
			}
		case f.kind == typeInputs:
			for i, m := range words(value) {
				if err := p.model(at.index(i), v, m, t); err != nil {
					return err
				}
			}
		case f.kind == typeCamera && !slices.Contains(trajectories, value.(string)):
			t.Trajectory = Input{Key: value.(string)}
		}
	}
	if e.Kind.inputs == nil {
		return nil
	}
	return e.Kind.inputs(p, e, v, t)
}

// input resolves a key, or a reference to a task that makes what is wanted. t waits for the tasks.
func (p *planner) input(at path, v *variant, text, want string, t *Task) (Input, error) {
	id, isRef := strings.CutPrefix(text, "@")
	if !isRef {
		return Input{Key: text}, nil
	}
	from := &p.specs[p.byID[id]]
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

// flags are those that a variant gives to the command.
func (p *planner) flags(e *expanded, v *variant) ([]Flag, error) {
	var flags []Flag
	for _, f := range e.Kind.fields {
		value := e.field(v, f.key)
		if value == nil {
			continue
		}
		if text, isText := value.(string); f.kind == typeCamera && isText && slices.Contains(trajectories, text) {
			flags = append(flags, Flag{"trajectory", text})
		}
		if f.flag != "" {
			flags = append(flags, Flag{f.flag, flagText(&f, value)})
		}
	}
	if e.Kind.flags != nil {
		more, err := e.Kind.flags(p, e, v)
		if err != nil {
			return nil, err
		}
		flags = append(flags, more...)
	}
	return flags, nil
}

// training are train's settings in a variant: those of set, and of the matrix.
func (p *planner) training(e *expanded, v *variant) ([]Flag, error) {
	r := &reader{p.Job}
	at := path{"task", e.at}
	values := map[string]any{}
	set, _ := e.fields["set"].(map[string]any)
	for key, value := range set {
		values[key] = value
	}
	for i, value := range choose(e.Matrix, v.own) {
		key := e.Matrix[i].Key
		if !slices.ContainsFunc(e.Kind.fields, func(f field) bool { return f.key == key }) {
			values[key] = value
		}
	}
	return r.flagsOf(at.add("set"), values)
}

// flagText words a value for a flag.
func flagText(f *field, value any) string {
	if f.key == "size" {
		return joined(value, "x")
	}
	return joined(value, ",")
}
