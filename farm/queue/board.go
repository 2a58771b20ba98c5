package queue

import (
	"slices"
	"time"
)

// board is a job with the state of each of its tasks, kept up to date as entries change. Who uses it holds whatever lock protects it.
type board struct {
	head     Head
	revision uint64 // of the head
	tasks    []Task
	heirs    [][]int // by task: the tasks that need it
	cells    []cell
	levels   map[Priority]bool // priorities of its tasks
	counts   map[State]int
	next     uint64 // the revision from which entries are still to be read
	opened   time.Time
}

// cell is what a board knows of a task.
type cell struct {
	entry    *Entry // nil while absent
	revision uint64
	at       time.Time // the server's stamp of the entry
	seen     time.Time // when this process learned of it, by its monotonic clock
	state    State
	called   bool // stream JOBS holds its message
}

func newBoard(head Head, revision uint64, tasks []Task) *board {
	b := &board{head: head, revision: revision, tasks: tasks, heirs: make([][]int, len(tasks)), cells: make([]cell, len(tasks)), levels: map[Priority]bool{}, counts: map[State]int{}, opened: time.Now()}
	for i, task := range tasks {
		b.levels[task.priority(head)] = true
		for _, need := range task.Needs {
			b.heirs[need] = append(b.heirs[need], i)
		}
	}
	b.counts[Blocked] = len(tasks)
	for i := range b.cells {
		b.cells[i].state = Blocked
	}
	b.deriveAll()
	return b
}

// setHead takes a newer head and returns the tasks whose state changed.
func (b *board) setHead(head Head, revision uint64) []int {
	if revision <= b.revision {
		return nil
	}
	b.head, b.revision = head, revision
	return b.deriveAll()
}

// setEntry takes a newer entry of a task and returns the tasks whose state changed.
func (b *board) setEntry(i int, entry *Entry, revision uint64, at time.Time) []int {
	c := &b.cells[i]
	if revision <= c.revision {
		return nil
	}
	failed := b.counts[Failed]
	c.entry, c.revision, c.at, c.seen = entry, revision, at, time.Now()
	if entry != nil && entry.State.Ended() {
		c.called = false // whoever ended it answers the message
	}
	changed := b.derive([]int{i})
	if b.head.FailFast && (failed == 0) != (b.counts[Failed] == 0) {
		changed = append(changed, b.deriveAll()...)
	}
	return changed
}

func (b *board) deriveAll() []int {
	all := make([]int, len(b.cells))
	for i := range all {
		all[i] = i
	}
	return b.derive(all)
}

// derive works out the states of tasks, and of those that follow from them.
func (b *board) derive(todo []int) (changed []int) {
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		state := b.stateOf(i)
		if state == b.cells[i].state {
			continue
		}
		b.counts[b.cells[i].state]--
		b.counts[state]++
		b.cells[i].state = state
		changed = append(changed, i)
		todo = append(todo, b.heirs[i]...)
	}
	return changed
}

// stateOf works out the state of a task from its entry, its needs and the head.
func (b *board) stateOf(i int) State {
	stored := Queued
	if e := b.cells[i].entry; e != nil {
		stored = e.State
	}
	switch {
	case stored.Ended(), stored == Canceling:
		return stored
	case b.head.Canceled && stored.owned():
		return Canceling
	case b.head.Canceled:
		return Canceled
	case stored.owned():
		return stored
	case stored == Queued && b.head.FailFast && b.counts[Failed] > 0:
		return Skipped
	}
	blocked := false
	for _, need := range b.tasks[i].Needs {
		switch state := b.cells[need].state; {
		case state == Succeeded:
			blocked = blocked || b.tasks[need].Inspect && !b.head.Inspected
		case state.Ended():
			return Skipped
		default:
			blocked = true
		}
	}
	if blocked {
		return Blocked
	}
	return stored
}

// inspects says whether a task is blocked only because somebody has to look at what it needs.
func (b *board) inspects(i int) bool {
	return b.cells[i].state == Blocked && !slices.ContainsFunc(b.tasks[i].Needs, func(need int) bool { return b.cells[need].state != Succeeded })
}

// state is where the job is.
func (b *board) state() JobState {
	ended := b.counts[Succeeded] + b.counts[Failed] + b.counts[Canceled] + b.counts[Skipped]
	switch {
	case ended < len(b.cells) && b.head.Canceled:
		return JobCanceling
	case ended < len(b.cells) && b.head.Paused:
		return JobPaused
	case ended < len(b.cells) && ended+b.counts[Blocked] == len(b.cells):
		return JobInspect // a graph without cycles always has a task that could run
	case ended < len(b.cells):
		return JobActive
	case b.counts[Failed] > 0:
		return JobFailed
	case b.counts[Canceled] > 0:
		return JobCanceled
	}
	return JobSucceeded
}

// forgetCalls is for when the stream has been looked at anew, or was emptied.
func (b *board) forgetCalls() {
	for i := range b.cells {
		b.cells[i].called = false
	}
}
