package spec

import (
	"slices"
	"strings"
)

// Plan is a job's tasks, in an order that does not change: a task is addressed by its place in it.
type Plan struct {
	Tasks []Task
}

// Task is one run of a command.
type Task struct {
	Index    int    `json:"index"`
	Name     string `json:"name"` // path of the task's folder below the job's, with slashes
	ID       string `json:"id"`   // of the [[task]] that it came of
	Kind     *Kind  `json:"kind"`
	Needs    []int  `json:"needs,omitempty"` // tasks that must be done before, ascending
	Inspect  bool   `json:"inspect,omitempty"`
	Pool     string `json:"pool"`
	Priority string `json:"priority"`
	Retry    Retry  `json:"-"`
	Limits   Limits `json:"-"`
	Pin      Pin    `json:"pin"`

	Source     Input   `json:"source,omitzero"`     // capture of train and others; pictures of encode and capture
	Models     []Model `json:"models,omitempty"`    // of render, convert and eval
	Cameras    Input   `json:"cameras,omitzero"`    // of render
	Trajectory Input   `json:"trajectory,omitzero"` // of render: a file
	Masks      Input   `json:"masks,omitzero"`      // of capture
	VocabTree  Input   `json:"vocab_tree,omitzero"` // of capture: a file
	Plan       Input   `json:"plan,omitzero"`       // of block and merge
	Block      int     `json:"block,omitempty"`     // number of a block
	Blocks     [2]int  `json:"blocks,omitzero"`     // of partition
	Finetune   int     `json:"finetune,omitempty"`  // of merge
	Frames     Frames  `json:"frames,omitzero"`     // of render; none: all
	Format     string  `json:"format,omitempty"`    // of encode
	Flags      []Flag  `json:"flags,omitempty"`     // of the command; tasks share them
}

// Input is a key below the root of inputs, or the outputs of tasks. Neither is none.
type Input struct {
	Key   string `json:"key,omitempty"`
	Tasks []int  `json:"tasks,omitempty"`
}

// None says that there is no such input.
func (i Input) None() bool { return i.Key == "" && len(i.Tasks) == 0 }

// Model is one to render, convert or measure, and the capture that it was trained on, where that is known.
type Model struct {
	Input
	Source Input `json:"source,omitzero"`
}

// planner expands a job.
type planner struct {
	*Job
	specs []expanded // as Job.Tasks
	byID  map[string]int
	tasks int // so far
	needs int // of all tasks, so far
	pairs int // of variants that were compared
	plan  *Plan
}

// expanded is a [[task]] with its variants. The tasks of variant v are at first + v*per and behind.
type expanded struct {
	*TaskSpec
	variants []variant
	first    int
	per      int
	shapes   [][]int        // which tasks have a say in the variants
	index    map[string]int // variants by what they say
}

// Plan expands the job. The same document gives the same tasks everywhere. Limits are checked before what they bound is
// made.
func (j *Job) Plan() (*Plan, error) {
	p := &planner{Job: j, byID: map[string]int{}, specs: make([]expanded, len(j.Tasks))}
	for i := range j.Tasks {
		s := &j.Tasks[i]
		p.specs[i] = expanded{TaskSpec: s}
		p.byID[s.ID] = i
	}
	order, err := p.order()
	if err != nil {
		return nil, err
	}
	for _, i := range order {
		if err := p.expand(i); err != nil {
			return nil, err
		}
	}
	n := 0
	for i := range p.specs {
		p.specs[i].first = n
		n += len(p.specs[i].variants) * p.specs[i].per
	}
	p.plan = &Plan{Tasks: make([]Task, n)}
	for _, i := range order {
		if err := p.fill(i); err != nil {
			return nil, err
		}
	}
	return p.plan, nil
}

// refs lists the ids that a task names, each once, with the place of the name.
func (p *planner) refs(s *TaskSpec) (ids []string, at []path) {
	root := path{"task", s.at}
	add := func(where path, v any) {
		text, _ := v.(string)
		if id, isRef := strings.CutPrefix(text, "@"); isRef && !slices.Contains(ids, id) {
			ids, at = append(ids, id), append(at, where)
		}
	}
	for i, id := range s.Needs {
		add(root.add("needs").index(i), "@"+id)
	}
	for _, f := range s.Kind.fields {
		switch f.kind {
		case typeInput:
			add(root.add(f.key), s.fields[f.key])
		case typeInputs:
			list, _ := s.fields[f.key].([]any)
			for i, v := range list {
				add(root.add(f.key).index(i), v)
			}
		}
	}
	for _, a := range s.Matrix {
		for i, v := range a.Values {
			where := root.add("matrix").add(a.Key)
			list, isList := v.([]any)
			if !isList {
				list = []any{v}
			}
			for _, v := range list {
				add(where.index(i), v)
			}
		}
	}
	return ids, at
}

// order sorts the written tasks so that each comes behind those that it names.
func (p *planner) order() ([]int, error) {
	const (
		untouched = iota
		open
		done
	)
	state := make([]int, len(p.specs))
	var order, chain []int
	var visit func(i int) error
	visit = func(i int) error {
		state[i] = open
		chain = append(chain, i)
		ids, at := p.refs(p.specs[i].TaskSpec)
		for n, id := range ids {
			next, known := p.byID[id]
			switch {
			case !known:
				return p.wrong(at[n], didYouMeanName(id, p.byID), "there is no task %q", id)
			case state[next] == open:
				var names []string
				for _, k := range chain[slices.Index(chain, next):] {
					names = append(names, p.specs[k].ID)
				}
				return p.wrong(at[n], "a task cannot depend on itself", "the tasks depend on each other in a cycle: %s",
					strings.Join(append(names, id), " -> "))
			case state[next] == untouched:
				if err := visit(next); err != nil {
					return err
				}
			}
		}
		chain = chain[:len(chain)-1]
		state[i] = done
		order = append(order, i)
		return nil
	}
	for i := range p.specs {
		if state[i] == untouched {
			if err := visit(i); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// didYouMeanName is a hint for an id that is none.
func didYouMeanName(id string, known map[string]int) string {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > maxEntries { // each is compared
		names = names[:maxEntries]
	}
	return didYouMean(id, names, "ids are what id = says, or the kind where there is none")
}

// count adds to the tasks, unless they become too many.
func (p *planner) count(at path, n int) error {
	if n > MaxTasks-p.tasks {
		return p.wrong(at, "split it into several jobs, or give larger chunks", "the job has more than %d tasks",
			MaxTasks)
	}
	p.tasks += n
	return nil
}

// need makes t wait for others. Copied is how many it waits for already that were not counted.
func (p *planner) need(t *Task, others []int, copied int) error {
	if len(others)+copied > MaxNeeds-p.needs {
		return p.wrong(nil, "split it into several jobs", "tasks have more than %d dependencies in all", MaxNeeds)
	}
	p.needs += len(others) + copied
	t.Needs = append(t.Needs, others...)
	return nil
}

// settle sorts what a task waits for.
func (t *Task) settle() {
	slices.Sort(t.Needs)
	t.Needs = slices.Compact(t.Needs)
}

// Flag is the value of a flag, "" where the task does not give it.
func (t *Task) Flag(name string) string {
	for _, f := range t.Flags {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}
