package queue

import "context"

// TakeBack takes the tasks of a job from owners that are known to be dead: the next attempts go on at once, and those that died with them do not count. Only who keeps all
// others from the job may say so: one that lives after all loses its leases.
func (q *Queue) TakeBack(ctx context.Context, job string) error {
	b, _, err := q.open(ctx, job)
	if err != nil {
		return failed("take back tasks", job, err)
	}
	var orphans []int
	for i := range b.cells {
		if b.cells[i].state.owned() {
			orphans = append(orphans, i)
		}
	}
	return failed("take back tasks", job, atOnce(orphans, func(i int) error { return q.takeBack(ctx, place{b, i}) }))
}

func (q *Queue) takeBack(ctx context.Context, at place) error {
	queued := false
	err := q.updateEntry(ctx, at.b.head.Name, at.i, func(e *Entry) bool {
		if !e.State.owned() {
			return false
		}
		e.handBack()
		e.Claim = ""
		e.Beat++
		queued = e.State == Queued
		return true
	})
	if err != nil || !queued {
		return err
	}
	// Its message is the dead owner's until a lease has passed: another one comes at once.
	if err := q.uncall(ctx, callSubject(at.b.head, &at.b.tasks[at.i], at.i)); err != nil || at.b.head.Paused || at.b.head.Canceled {
		return err // the reconciler calls it when that changes
	}
	return q.call(ctx, at)
}
