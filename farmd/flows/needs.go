package flows

import (
	"slices"

	"vksplat/farm/spec"
)

// needs are the tasks that a task needs. What earlier servers wrote has neither Firm nor Models: there a task that
// gathers models is skipped like any other.
type needs struct {
	Needs Indices `json:"needs,omitempty"` // all
	Firm  Indices `json:"firm,omitempty"`  // of a task that gathers models, those that it does not read
	// its models' tasks by those of their captures; "" where one of the models is no task's
	Models map[Indices]Indices `json:"models,omitempty"`
}

func needsOf(t *spec.Task) needs {
	n := needs{Needs: indicesOf(t.Needs)}
	if !t.Kind.Gathers {
		return n
	}
	reads := t.Reads()
	n.Firm = indicesOf(slices.DeleteFunc(slices.Clone(t.Needs), func(need int) bool {
		_, read := slices.BinarySearch(reads, need)
		return read
	}))
	models := map[Indices][]int{}
	for _, m := range t.Models {
		source := indicesOf(m.Source.Tasks)
		if before, known := models[source]; len(m.Tasks) == 0 || known && before == nil {
			models[source] = nil
		} else {
			models[source] = append(before, m.Tasks...)
		}
	}
	n.Models = map[Indices]Indices{}
	for source, tasks := range models {
		n.Models[source] = indicesOf(tasks)
	}
	return n
}

// size is the length of the text, about.
func (n *needs) size() int {
	size := len(n.Needs) + len(n.Firm)
	for source, tasks := range n.Models {
		size += len(source) + len(tasks) + len(`"":"",`)
	}
	return size
}

// without is Without of spec.Task.
func (n *needs) without(lost map[int]bool) bool {
	if n.Models == nil {
		return !n.Needs.has(lost, true)
	}
	if n.Firm.has(lost, true) {
		return false
	}
	for source, tasks := range n.Models {
		if !source.has(lost, true) && (tasks == "" || tasks.has(lost, false)) {
			return true
		}
	}
	return false
}

// has says whether one of the tasks is lost, or is not.
func (s Indices) has(lost map[int]bool, is bool) (has bool) {
	_ = s.each(func(first, last int) { // this program wrote it
		for i := first; i <= last && !has; i++ {
			has = lost[i] == is
		}
	})
	return has
}
