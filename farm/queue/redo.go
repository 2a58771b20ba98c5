package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Redo is a Retry of what succeeded, until it has reached all tasks: whoever began it may be interrupted, and then what was made from the old results would count beside
// the new ones. The next Retry goes on with it, and so do Fsck and, after a while, the reconciler.
type Redo struct {
	Number    int       `json:"number"` // of those of the job
	Selection Selection `json:"selection"`
	Canceled  bool      `json:"canceled,omitempty"` // the job was, when it began
}

// errRedo is of a job that another Retry has begun to do again.
var errRedo = errors.New("another retry is under way")

// beginRedo has tasks and their heirs be done again. From its first write on that will happen, whatever becomes of this process.
func (q *Queue) beginRedo(ctx context.Context, b *board, tasks []int, selection Selection) error {
	for _, i := range b.withHeirs(tasks) {
		if b.cells[i].state.owned() {
			return fmt.Errorf("task %q: %w", b.tasks[i].Name, ErrRunning)
		}
	}
	err := q.changeHead(ctx, b.head.Name, func(head *Head) error {
		switch {
		case head.Forgotten:
			return ErrForgotten
		case head.Redo != nil:
			return errRedo
		}
		head.Redos++
		head.Redo = &Redo{head.Redos, selection, head.Canceled}
		head.reopen() // a reconciler looks at it from now on
		b.head = *head
		return nil
	})
	if err != nil {
		return err
	}
	return q.finishRedo(ctx, b)
}

// finishRedo does what is left of the Redo of a job. Several may do so at once.
func (q *Queue) finishRedo(ctx context.Context, b *board) error {
	job, r := b.head.Name, b.head.Redo
	tasks, err := r.Selection.of(b)
	if err != nil {
		return err
	}
	tasks = b.withHeirs(tasks)
	if r.Canceled && b.head.Canceled {
		if err := q.updateEntries(ctx, job, b.canceledBut(tasks), cancelEntry); err != nil {
			return err
		}
	}
	if err := q.redo(ctx, b, tasks, r); err != nil {
		return err
	}
	return q.updateHead(ctx, job, func(head *Head) bool {
		if head.Forgotten || head.Redo == nil || head.Redo.Number != r.Number {
			return false // another was faster
		}
		head.Redo = nil
		head.Canceled = head.Canceled && !r.Canceled // else somebody has canceled it since
		head.reopen()
		return true
	})
}

// withHeirs adds what needs the tasks, directly or not: it was made from what is now made anew.
func (b *board) withHeirs(tasks []int) []int {
	taken := map[int]bool{}
	for todo := slices.Clone(tasks); len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if taken[i] {
			continue
		}
		taken[i] = true
		todo = append(todo, b.heirs[i]...)
	}
	all := make([]int, 0, len(taken))
	for i := range taken {
		all = append(all, i)
	}
	slices.Sort(all)
	return all
}

// redo queues tasks again in their order. Those that need others of them are done anew whatever became of them: an attempt that was given up may yet put results to the
// store, and a worker may have claimed one since b was read. Who claims one later sees that what it needs is wanted anew.
func (q *Queue) redo(ctx context.Context, b *board, tasks []int, r *Redo) error {
	for at, group := range b.inOrder(tasks) {
		err := atOnce(group, func(i int) error {
			return q.updateEntry(ctx, b.head.Name, i, func(e *Entry) bool {
				if e.Redo >= r.Number {
					return false // somebody else has done it, or wants it anew later
				}
				if at == 0 || e.State == Canceling {
					if !r.Selection.queueAgain(e) {
						return false
					}
				} else {
					e.again()
				}
				e.Redo = r.Number
				return true
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inOrder groups tasks such that each comes behind those of them that it needs.
func (b *board) inOrder(tasks []int) (groups [][]int) {
	waits := map[int]int{} // by task, how many of these that it needs come before
	for _, i := range tasks {
		waits[i] = 0
	}
	for _, i := range tasks {
		for _, heir := range b.heirs[i] {
			if _, is := waits[heir]; is {
				waits[heir]++
			}
		}
	}
	next := slices.DeleteFunc(slices.Clone(tasks), func(i int) bool { return waits[i] > 0 })
	for len(next) > 0 {
		groups = append(groups, next)
		var then []int
		for _, i := range next {
			for _, heir := range b.heirs[i] {
				if waits[heir]--; waits[heir] == 0 {
					then = append(then, heir)
				}
			}
		}
		next = then
	}
	return groups
}
