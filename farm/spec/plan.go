package spec

import (
	"maps"
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
	byID  map[string]*expanded
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
	index    map[[2]int][]int // variants by binding: the [[task]] that has the matrix, and the combination
	bound    map[int]int      // by [[task]] that has a matrix: the number of variants bound to it
}

// Plan expands the job. The same document gives the same tasks everywhere. Limits are checked before what they bound is
// made.
func (j *Job) Plan() (*Plan, error) {
	p := &planner{Job: j, byID: map[string]*expanded{}, specs: make([]expanded, len(j.Tasks))}
	for i := range j.Tasks {
		s := &j.Tasks[i]
		p.specs[i] = expanded{TaskSpec: s, per: 1, index: map[[2]int][]int{}, bound: map[int]int{}}
		p.byID[s.ID] = &p.specs[i]
	}
	order, err := p.order()
	if err != nil {
		return nil, err
	}
	for _, e := range order {
		if err := p.expand(e); err != nil {
			return nil, err
		}
	}
	n := 0
	for i := range p.specs {
		p.specs[i].first = n
		n += len(p.specs[i].variants) * p.specs[i].per
	}
	p.plan = &Plan{Tasks: make([]Task, n)}
	for _, e := range order {
		if err := p.fill(e); err != nil {
			return nil, err
		}
	}
	return p.plan, nil
}

// refs lists the ids that a task names, with the place of the name.
func (e *expanded) refs() (ids []string, at []path) {
	root := path{"task", e.at}
	var add func(where path, v any)
	add = func(where path, v any) {
		if list, isList := v.([]any); isList {
			for i := range list {
				add(where.index(i), list[i])
			}
		} else if text, _ := v.(string); strings.HasPrefix(text, "@") {
			ids, at = append(ids, text[1:]), append(at, where)
		}
	}
	for i, id := range e.Needs {
		add(root.add("needs").index(i), "@"+id)
	}
	for _, f := range e.Kind.fields {
		if f.Type == typeInput || f.Type == typeInputs {
			add(root.add(f.Name), e.fields[f.Name])
		}
	}
	for _, a := range e.Matrix {
		add(root.add("matrix").add(a.Key), a.Values)
	}
	return ids, at
}

// order sorts the written tasks so that each comes behind those that it names.
func (p *planner) order() (order []*expanded, err error) {
	done := map[*expanded]bool{}
	var chain []*expanded // those that wait for the next one
	var visit func(e *expanded) error
	visit = func(e *expanded) error {
		chain = append(chain, e)
		ids, at := e.refs()
		for n, id := range ids {
			next := p.byID[id]
			if next == nil {
				known := slices.Sorted(maps.Keys(p.byID))
				return p.wrong(at[n], didYouMean(id, known[:min(len(known), maxEntries)], // each is compared
					"a task's id is its id key, or its kind if it has none"), "there is no task %q", id)
			}
			if begin := slices.Index(chain, next); begin >= 0 {
				var names []string
				for _, waits := range chain[begin:] {
					names = append(names, waits.ID)
				}
				return p.wrong(at[n], "a task cannot depend on itself", "the tasks depend on each other in a cycle: %s",
					strings.Join(append(names, id), " -> "))
			}
			if !done[next] {
				if err := visit(next); err != nil {
					return err
				}
			}
		}
		chain = chain[:len(chain)-1]
		done[e] = true
		order = append(order, e)
		return nil
	}
	for i := range p.specs {
		if e := &p.specs[i]; !done[e] {
			if err := visit(e); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// tooMany is the error of a job with too many tasks.
func (p *planner) tooMany(at path) error {
	return p.wrong(at, "split it into several jobs, or give fewer values or larger chunks",
		"the job has more than %d tasks", MaxTasks)
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

// Flag is the value of a flag, "" where the task does not give it.
func (t *Task) Flag(name string) string {
	for _, f := range t.Flags {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}
