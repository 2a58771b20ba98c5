package queue

import (
	"fmt"
	"testing"
)

// TestDeclinedTakeNoRoom has tasks that everybody declines take no room from others: not in the window, not in the limits of their user and pool.
func TestDeclinedTakeNoRoom(t *testing.T) {
	const window = 4
	revision := uint64(1)
	job := func(owner string, tasks int) *board {
		revision++
		list := make([]Task, tasks)
		for i := range list {
			list[i].Name = fmt.Sprint(i)
		}
		return newBoard(Head{Name: fmt.Sprint("j", revision), Owner: owner, Priority: Normal}, revision, list)
	}
	// release does what a round of the reconciler does, and says how many tasks it calls of each job.
	release := func(limits Limits, boards ...*board) []int {
		l := newLoad(limits)
		for _, b := range boards {
			l.count(b, window)
		}
		called := make([]int, len(boards))
		for i, b := range boards {
			for _, at := range b.calls(Normal, &l, window) {
				b.cells[at.i].called = true
				called[i]++
			}
		}
		return called
	}
	decline := func(b *board) {
		for i := range b.cells {
			if revision++; b.cells[i].waits() {
				b.setEntry(i, &Entry{State: Queued, Declined: map[string]string{"n": "no root"}}, revision, b.cells[i].at)
			}
		}
	}
	want := func(what string, got []int, want ...int) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v tasks are called, want %v", what, got, want)
		}
	}
	odd, next := job("ann", 100), job("bob", 100)
	want("at first", release(Limits{}, odd, next), window, 0)
	want("while they wait", release(Limits{}, odd, next), 0, 0)
	decline(odd)
	want("once all are declined", release(Limits{}, odd, next), 0, window)

	some, more := job("ann", 3), job("ann", 9)
	limits := Limits{Users: map[string]int{"ann": 2}, Pools: map[string]int{"*": 2}}
	want("as the limits say", release(limits, some, more), 2, 0)
	decline(some)
	want("the next of the user", release(limits, some, more), 1, 1)
	decline(more)
	want("and the next", release(limits, some, more), 0, 1)
	want("then no more", release(limits, some, more), 0, 0)

	revision++
	some.setEntry(0, &Entry{State: Running, Declined: map[string]string{"n": "no root"}}, revision, some.cells[0].at)
	decline(some)
	want("while one runs", release(limits, some, more), 0, 0)

	// Messages that go round and round have an end, too.
	many := make([]*board, 3*mostDeclined)
	total := 0
	for i := range many {
		many[i] = job("ann", 100)
	}
	for range 10 * len(many) {
		for _, n := range release(Limits{}, many...) {
			total += n
		}
		for _, b := range many {
			decline(b)
		}
	}
	if total < mostDeclined*window || total > (mostDeclined+1)*window {
		t.Errorf("%d tasks that nobody can do are in front of workers", total)
	}
}
