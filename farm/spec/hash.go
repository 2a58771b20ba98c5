package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Hash is the identity of a task's results: of what it does, with which settings, to which inputs, and of the tasks
// that make these; in hexadecimal. What only says where and when it runs has no part in it, nor have other tasks of the
// job: a job that was extended keeps the results that it has.
func (p *Plan) Hash(i int) string { return p.hash(i, map[int]string{}) }

// hash is Hash, with those that are known already.
func (p *Plan) hash(i int, known map[int]string) string {
	if h, is := known[i]; is {
		return h
	}
	t := p.Tasks[i]
	t.Index, t.Name, t.ID, t.Needs, t.Inspect, t.Pool, t.Priority, t.Pin = 0, "", "", nil, false, "", "", Pin{}
	var made []string // by the tasks of the inputs, in order
	t.Models = append([]Model(nil), t.Models...)
	for _, in := range t.inputs() {
		for _, k := range in.Tasks {
			made = append(made, p.hash(k, known))
		}
		made = append(made, "") // where one input ends
		in.Tasks = nil
	}
	data, err := json.Marshal(struct {
		Task
		Made []string `json:"made"`
	}{t, made})
	if err != nil {
		panic(err) // it is made of texts and whole numbers
	}
	sum := sha256.Sum256(data)
	known[i] = hex.EncodeToString(sum[:])
	return known[i]
}

// inputs lists all that a task reads.
func (t *Task) inputs() []*Input {
	list := []*Input{&t.Source, &t.Cameras, &t.Trajectory, &t.Plan}
	if !t.Masks.None() { // hashes of tasks of other kinds are as if there were no such
		list = append(list, &t.Masks)
	}
	for k := range t.Models {
		list = append(list, &t.Models[k].Input, &t.Models[k].Source)
	}
	return list
}

// Keys lists the inputs of a task that no task makes, below the root of inputs.
func (t *Task) Keys() (keys []string) {
	for _, in := range t.inputs() {
		if in.Key != "" {
			keys = append(keys, in.Key)
		}
	}
	return keys
}

// Reads lists the tasks whose results a task reads, ascending. It may need others beside them.
func (t *Task) Reads() (tasks []int) {
	for _, in := range t.inputs() {
		tasks = append(tasks, in.Tasks...)
	}
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

// Lacks says whether a model, or the capture that it is measured with, is one of those that lost tasks were to make.
func (m *Model) Lacks(lost func(task int) bool) bool {
	return slices.ContainsFunc(m.Tasks, lost) || slices.ContainsFunc(m.Source.Tasks, lost)
}

// Without says whether a task can do without the results of those that are lost: one that gathers models can, as long
// as one of these is left. What it needs and does not read is no model.
func (t *Task) Without(lost func(task int) bool) bool {
	reads := t.Reads()
	return !slices.ContainsFunc(t.Needs, func(need int) bool {
		_, read := slices.BinarySearch(reads, need)
		return lost(need) && !(t.Kind.Gathers && read)
	}) && (len(t.Models) == 0 || slices.ContainsFunc(t.Models, func(m Model) bool { return !m.Lacks(lost) }))
}
