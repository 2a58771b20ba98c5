package spec

import (
	"fmt"
	"slices"
	"strings"
)

// perVariant is how many tasks a variant of a written task has.
func (p *planner) perVariant(e *expanded, v *variant) (int, error) {
	switch e.Kind {
	case KindPartition:
		grid := intsOf(e.field(v, "blocks"))
		if len(grid) != 2 || grid[0]*grid[1] > maxBlocks {
			return 0, p.wrong(path{"task", e.at, "blocks"}, "", "there are %v blocks, %d are possible", e.field(v, "blocks"), maxBlocks)
		}
		return grid[0]*grid[1] + 2, nil
	case KindRender:
		return p.pieces(e, v, nil)
	}
	return 1, nil
}

// pieces counts the tasks of a render and hands their frames to each, if that is given: first those of `first`, one by one, then what lies between them in chunks.
func (p *planner) pieces(e *expanded, v *variant, each func(f Frames, inspect bool)) (int, error) {
	at := path{"task", e.at}
	text, given := e.field(v, "frames").(string)
	chunk, _ := e.field(v, "chunk").(int64)
	first := intsOf(e.field(v, "first"))
	if each == nil {
		each = func(Frames, bool) {}
	}
	if !given {
		if chunk > 0 || len(first) > 0 {
			return 0, p.wrong(at, `as in: frames = "0-299"`, "chunk and first need frames")
		}
		each(Frames{}, false)
		return 1, nil
	}
	all, err := ParseFrames(text)
	if err != nil {
		return 0, p.wrong(at.add("frames"), "", "%w", err)
	}
	if chunk == 0 {
		chunk = int64(all.Count())
	}
	slices.Sort(first)
	n, from := 0, 0 // places in all
	for _, f := range first {
		if f < all.First || f > all.Last || (f-all.First)%all.Step != 0 {
			return 0, p.wrong(at.add("first"), "give frames of "+text, "frame %d is none of %s", f, text)
		}
		each(Frames{f, f, 1}, true)
		n++
	}
	for i := range len(first) + 1 {
		to := all.Count()
		if i < len(first) {
			to = (first[i] - all.First) / all.Step
		}
		if pieces := (int64(to-from) + chunk - 1) / chunk; to > from && pieces > int64(MaxTasks) {
			return 0, p.wrong(at.add("chunk"), "give larger chunks", "the job has more than %d tasks", MaxTasks)
		}
		for ; from < to; from += int(chunk) {
			end := min(from+int(chunk), to) - 1
			each(Frames{all.First + from*all.Step, all.First + end*all.Step, all.Step}, false)
			n++
		}
		from = to + 1
	}
	return n, nil
}

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
	t := Task{ID: e.ID, Kind: e.Kind, Pool: e.Pool, Priority: e.Priority, Retry: e.Retry, Limits: e.Limits, Pin: e.Pin, Name: e.ID}
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
	switch e.Kind {
	case KindPartition:
		err = p.fillBlocks(e, v, tasks)
	case KindRender:
		err = p.fillFrames(e, v, tasks)
	}
	if err != nil {
		return err
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
	for _, f := range e.kind.fields {
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
			in, err := p.input(at, v, value.(string), t)
			if err != nil {
				return err
			}
			if f.key == "cameras" {
				t.Cameras = in
			} else {
				t.Source = in
			}
		case f.kind == typeInputs:
			for i, m := range words(map[string]any{"": value}, "") {
				if err := p.model(at.index(i), v, m, t); err != nil {
					return err
				}
			}
		case f.kind == typeCamera && !slices.Contains(trajectories, value.(string)):
			t.Trajectory = Input{Key: value.(string)}
		}
	}
	if e.Kind == KindEval {
		return p.sources(e, t)
	}
	if e.Kind == KindEncode {
		t.Format = "mp4"
		if format, given := e.field(v, "format").(string); given {
			t.Format = format
		}
	}
	return nil
}

// sources gives the models of an eval the capture that they are measured with: their own, unless the task names one.
func (p *planner) sources(e *expanded, t *Task) error {
	for i := range t.Models {
		m := &t.Models[i]
		if !t.Source.None() {
			m.Source = t.Source
		}
		if m.Source.None() {
			return p.wrong(path{"task", e.at}, "add: source", "nothing says which capture model %d was trained on", i+1)
		}
		if err := p.need(t, m.Source.Tasks, 0); err != nil {
			return err
		}
	}
	return nil
}

// makes says what the outputs of a kind are, for messages and to see what fits where.
var makes = map[Kind]string{KindDemo: "a capture", KindTrain: "a model", KindPartition: "a model", KindRender: "pictures", KindEncode: "a video", KindEval: "a table", KindConvert: "a model"}

// takes says the same of the inputs.
func takes(kind Kind, key string) string {
	switch {
	case key == "model" || key == "models":
		return "a model"
	case kind == KindEncode:
		return "pictures"
	}
	return "a capture"
}

// input resolves a key or reference. t waits for the tasks.
func (p *planner) input(at path, v *variant, text string, t *Task) (Input, error) {
	id, isRef := strings.CutPrefix(text, "@")
	if !isRef {
		return Input{Key: text}, nil
	}
	from := &p.specs[p.byID[id]]
	if want, got := takes(t.Kind, at[2].(string)), makes[from.Kind]; want != got {
		return Input{}, p.wrong(at, "name a task that makes "+want, "%s is needed, %s makes %s", want, id, got)
	}
	fits, err := p.matching(at, from, v.binds)
	if err != nil {
		return Input{}, err
	}
	var in Input
	for _, k := range fits {
		first := from.first + k*from.per
		switch from.Kind {
		case KindRender:
			for n := range from.per {
				in.Tasks = append(in.Tasks, first+n)
			}
		default: // of blocks, the merge
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
	in, err := p.input(at, v, text, t)
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
		if from.Kind == KindConvert {
			m.Source = from.Models[0].Source
		}
		t.Models = append(t.Models, m)
	}
	return nil
}

// fillBlocks makes the tasks of a partition.
func (p *planner) fillBlocks(e *expanded, v *variant, tasks []Task) error {
	grid := intsOf(e.field(v, "blocks"))
	plan, merge := &tasks[0], &tasks[len(tasks)-1]
	name := plan.Name
	plan.Name, plan.Blocks = name+"/partition", [2]int{grid[0], grid[1]}
	training, err := p.training(e, v)
	if err != nil {
		return err
	}
	made := Input{Tasks: []int{plan.Index}}
	var all []int
	for n := 1; n < len(tasks)-1; n++ {
		t := &tasks[n]
		t.Kind, t.Name, t.Block, t.Plan, t.Flags = KindBlock, fmt.Sprintf("%s/block-%d", name, n-1), n-1, made, training
		if err := p.need(t, made.Tasks, 0); err != nil {
			return err
		}
		all = append(all, t.Index)
	}
	merge.Kind, merge.Name, merge.Plan, merge.Flags = KindMerge, name+"/merge", made, nil
	for _, k := range all {
		merge.Models = append(merge.Models, Model{Input: Input{Tasks: []int{k}}})
	}
	if n, given := e.field(v, "finetune").(int64); given {
		merge.Finetune = int(n)
	}
	return p.need(merge, append(all, plan.Index), 0)
}

// fillFrames gives the tasks of a render their frames. Those of the rest wait for those that are looked at.
func (p *planner) fillFrames(e *expanded, v *variant, tasks []Task) error {
	n := 0
	var looked []int
	var err error
	name := tasks[0].Name
	_, wrong := p.pieces(e, v, func(f Frames, inspect bool) {
		t := &tasks[n]
		n++
		t.Frames, t.Inspect = f, inspect
		switch {
		case inspect:
			t.Name = fmt.Sprintf("%s/first-%04d", name, f.First)
			looked = append(looked, t.Index)
		case len(tasks) > 1:
			t.Name = fmt.Sprintf("%s/%04d-%04d", name, f.First, f.Last)
		}
		if !inspect && err == nil {
			err = p.need(t, looked, 0)
		}
	})
	if wrong != nil {
		return wrong
	}
	return err
}

// flags are those that a variant gives to the command.
func (p *planner) flags(e *expanded, v *variant) ([]Flag, error) {
	var flags []Flag
	for _, f := range e.kind.fields {
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
	if e.Kind == KindTrain {
		more, err := p.training(e, v)
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
		if !slices.ContainsFunc(e.kind.fields, func(f field) bool { return f.key == key }) {
			values[key] = value
		}
	}
	flags, err := r.flagsOf(at.add("set"), values)
	if preset, given := e.field(v, "preset").(string); given && e.Kind == KindPartition {
		flags = append([]Flag{{"preset", preset}}, flags...)
	}
	return flags, err
}

// flagText words a value for a flag.
func flagText(f *field, value any) string {
	if f.key == "size" {
		return joined(value, "x")
	}
	return joined(value, ",")
}
