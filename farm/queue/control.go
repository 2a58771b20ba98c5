package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"vksplat/scene"
)

// Selection names tasks of a job. The zero Selection means all of them.
type Selection struct {
	Tasks  []string `json:"tasks,omitempty"`  // names, or beginnings of names up to a "/": "fly" selects "fly/0001-0050"
	Frames *Frames  `json:"frames,omitempty"` // of those, tasks whose name ends in a range of frames that has one of these
	Redo   bool     `json:"redo,omitempty"`   // Retry: also tasks that succeeded, and what needs them
}

// nothing is ErrNothing with the reason.
func nothing(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNothing, fmt.Sprintf(format, args...))
}

// Cancel cancels a job, or tasks of it. Running tasks end when their workers have stopped them. What has ended is left alone: where all has, that is ErrNothing.
func (q *Queue) Cancel(ctx context.Context, job string, selection Selection) error {
	const op = "cancel"
	if selection.all() {
		return failed(op, job, q.changeHead(ctx, job, func(head *Head) error {
			switch {
			case head.Ended != "":
				return nothing("the job has ended: %s", head.Ended)
			case head.Canceled:
				return nothing("the job is canceled already")
			}
			head.Canceled = true
			return nil
		}))
	}
	b, _, err := q.open(ctx, job)
	if err != nil {
		return failed(op, job, err)
	}
	tasks, err := selection.of(b)
	if err != nil {
		return failed(op, job, err)
	}
	if !slices.ContainsFunc(tasks, func(i int) bool {
		c := &b.cells[i]
		return !c.state.Ended() && (c.state != Canceling || c.entry.Again)
	}) {
		return failed(op, job, nothing("these tasks have ended, or are canceled already"))
	}
	return failed(op, job, q.updateEntries(ctx, job, tasks, cancelEntry))
}

func cancelEntry(e *Entry) bool {
	switch {
	case e.State.Ended(), e.State == Canceling && !e.Again:
		return false
	case e.State.owned():
		e.Again = false
		e.State = Canceling
	default:
		e.State = Canceled
	}
	return true
}

// Retry queues tasks again that failed or were canceled, and with them what was skipped because of them: all of the job, or those selected. Where none did,
// that is ErrNothing.
func (q *Queue) Retry(ctx context.Context, job string, selection Selection) error {
	const op = "retry"
	finished := false // a Redo of before
	for {
		b, _, err := q.open(ctx, job)
		if err == nil && b.head.Forgotten {
			err = ErrForgotten
		}
		if err != nil {
			return failed(op, job, err)
		}
		if b.head.Redo != nil {
			if err := q.finishRedo(ctx, b); err != nil || reflect.DeepEqual(b.head.Redo.Selection, selection) { // the same command again
				return failed(op, job, err)
			}
			finished = true
			continue
		}
		tasks, err := selection.of(b)
		if err != nil {
			return failed(op, job, err)
		}
		switch {
		case b.halfEnded(), slices.ContainsFunc(tasks, func(i int) bool { return selection.again(b.cells[i].state) }):
		case finished:
			return nil
		default:
			return failed(op, job, nothing("no task of these failed or was canceled"))
		}
		if !selection.Redo {
			return failed(op, job, q.requeue(ctx, b, tasks, selection))
		}
		if err := q.beginRedo(ctx, b, tasks, selection); !errors.Is(err, errRedo) {
			return failed(op, job, err)
		}
	}
}

// requeue queues tasks of a job again that failed or were canceled.
func (q *Queue) requeue(ctx context.Context, b *board, tasks []int, selection Selection) error {
	if b.head.Canceled {
		if err := q.updateEntries(ctx, b.head.Name, b.canceledBut(tasks), cancelEntry); err != nil {
			return err
		}
	}
	if err := q.updateEntries(ctx, b.head.Name, tasks, selection.queueAgain); err != nil {
		return err
	}
	// The head comes last: from now on a reconciler looks at the entries again.
	return q.changeHead(ctx, b.head.Name, func(head *Head) error {
		if head.Forgotten {
			return ErrForgotten
		}
		head.reopen()
		head.Canceled = false
		return nil
	})
}

// queueAgain is what Retry does to an entry. A task whose worker is about to stop it is queued once it has.
func (s Selection) queueAgain(e *Entry) bool {
	switch {
	case e.State == Canceling && !e.Again:
		e.Again = true
	case e.State == Failed, e.State == Canceled, s.Redo && e.State == Succeeded:
		e.again()
	default:
		return false
	}
	return true
}

// halfEnded says whether a job has ended as its head says, and has tasks that have not: whoever queued them again was interrupted before the last step.
func (b *board) halfEnded() bool { return b.head.Ended != "" && !b.state().Ended() }

// reopen has a reconciler read a job anew.
func (h *Head) reopen() {
	h.Ended, h.Counts = "", nil
	h.Generation++
}

// again says whether Retry does something about a task in this state.
func (s Selection) again(state State) bool {
	return state == Failed || state == Canceled || state == Canceling || s.Redo && state == Succeeded
}

// canceledBut lists the tasks that are canceled with their job and not among tasks: they must stay so when the job no longer is.
func (b *board) canceledBut(tasks []int) (rest []int) {
	chosen := make([]bool, len(b.cells))
	for _, i := range tasks {
		chosen[i] = true
	}
	for i := range b.cells {
		if !chosen[i] && (b.cells[i].state == Canceled || b.cells[i].state == Canceling) {
			rest = append(rest, i)
		}
	}
	return rest
}

// Pause keeps tasks of a job from being started; running ones go on.
func (q *Queue) Pause(ctx context.Context, job string) error {
	return failed("pause", job, q.changeHead(ctx, job, func(head *Head) error {
		switch {
		case head.Ended != "":
			return nothing("the job has ended: %s", head.Ended)
		case head.Paused:
			return nothing("the job is paused already")
		}
		head.Paused = true
		return nil
	}))
}

// Resume ends a pause. Where a job waits for somebody to look at its first frames, it says that somebody has.
func (q *Queue) Resume(ctx context.Context, job string) error {
	_, status, err := q.open(ctx, job)
	if err != nil {
		return failed("resume", job, err)
	}
	return failed("resume", job, q.changeHead(ctx, job, func(head *Head) error {
		if !head.Paused && status.State != JobInspect {
			return nothing("the job is %s, not paused", status.State)
		}
		head.Inspected = head.Inspected || status.State == JobInspect
		head.Paused = false
		return nil
	}))
}

// Retire has a job that has ended stay so, as it is about to be forgotten: nobody works on it again while what it left is removed.
func (q *Queue) Retire(ctx context.Context, job string) error {
	const op = "delete"
	err := q.changeHead(ctx, job, func(head *Head) error {
		if head.Ended == "" {
			return ErrNotEnded
		}
		head.Forgotten = true
		return nil
	})
	if errors.Is(err, ErrNotEnded) {
		return failure(op, job, err, "Cancel it first.", scene.ErrUsage)
	}
	return failed(op, job, err)
}

// Delete forgets a job that has ended, its logs too.
func (q *Queue) Delete(ctx context.Context, job string) error {
	if err := q.Retire(ctx, job); err != nil {
		return err
	}
	_, revision, err := q.head(ctx, job)
	if errors.Is(err, ErrNoJob) {
		return nil // somebody else was faster
	}
	if err == nil {
		err = q.forget(ctx, tokenOf(job), revision)
	}
	return failed("delete", job, err)
}

// forget removes all that is stored under a job's token, whose head, of that revision, says that it is forgotten. What another job of the name would take for its own must
// be gone before the head says so, also where this was interrupted and is done again.
//
// The head itself stays, as one that is gone: where a server (2.15) is killed, it finds the values again that a key had before the last one, unless the last one is there.
// So may entries of tasks come back, which Submit therefore writes anew where a job of the name was there before. Other keys are written once.
func (q *Queue) forget(ctx context.Context, token string, revision uint64) error {
	places := []struct {
		stream, subject string
		until           uint64 // what comes behind is of another job of the name
	}{
		{stream: jobStream, subject: "jobs.*.*." + token + ".*"}, {stream: logStream, subject: "log." + token + ".*"},
		{stream: q.previews.stream, subject: q.previews.subject(token + ".*")}, {stream: q.tasks.stream, subject: q.tasks.subject(token + ".*")},
		{stream: q.ctl.stream, subject: q.ctl.subject(endingKey(token))}, {stream: q.jobs.stream, subject: q.jobs.subject(token + ".>")},
	}
	for i := range places {
		var err error
		if places[i].until, err = q.lastIn(ctx, places[i].stream); err != nil {
			return err
		}
	}
	found, err := q.jobs.read(ctx, token)
	if errors.Is(err, errAbsent) || err == nil && found.revision != revision {
		return nil // somebody else was faster
	}
	if err != nil {
		return err
	}
	head, err := parseHead(found.value)
	if err != nil {
		return err
	}
	for _, at := range places {
		if err := q.purge(ctx, at.stream, at.subject, jetstream.WithPurgeSequence(at.until+1)); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(Head{Format: Format, Name: head.Name, Tasks: max(head.Tasks, head.Former), Ended: cmp.Or(head.Ended, JobCanceled), Forgotten: true, Gone: true})
	if err != nil {
		return err
	}
	if _, err := q.jobs.cas(ctx, token, revision, raw); !errors.Is(err, errConflict) {
		return err
	}
	return nil
}

// lastIn is the number of the last message of a stream, 0 where there never was one.
func (q *Queue) lastIn(ctx context.Context, stream string) (last uint64, err error) {
	err = q.retry(ctx, "look at "+stream, func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, stream)
		if err == nil {
			last = s.CachedInfo().State.LastSeq
		}
		return err
	})
	return last, err
}

// purge removes what is in a stream under a subject.
func (q *Queue) purge(ctx context.Context, stream, subject string, more ...jetstream.StreamPurgeOpt) error {
	return q.retry(ctx, "purge "+subject, func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		return s.Purge(ctx, append(more[:len(more):len(more)], jetstream.WithPurgeSubject(subject))...)
	})
}

// changeHead changes a head, or gives the error of change.
func (q *Queue) changeHead(ctx context.Context, job string, change func(*Head) error) error {
	var refused error
	err := q.updateHead(ctx, job, func(head *Head) bool {
		refused = change(head)
		return refused == nil
	})
	return cmp.Or(err, refused)
}

// updateHead changes a head by compare-and-set. change says whether there is anything to write.
func (q *Queue) updateHead(ctx context.Context, job string, change func(*Head) bool) error {
	for {
		head, revision, err := q.head(ctx, job)
		if err != nil || !change(&head) {
			return err
		}
		raw, err := json.Marshal(head)
		if err != nil {
			return err
		}
		if _, err = q.jobs.cas(ctx, tokenOf(job), revision, raw); !errors.Is(err, errConflict) {
			if err == nil {
				q.log.Info("job changed", "job", job, "paused", head.Paused, "canceled", head.Canceled, "ended", head.Ended)
			}
			return err
		}
	}
}

func entryKey(job string, i int) string { return tokenOf(job) + "." + strconv.Itoa(i) }

// entry reads an entry; one that is absent is queued.
func (q *Queue) entry(ctx context.Context, job string, i int) (*Entry, record, error) {
	r, err := q.tasks.read(ctx, entryKey(job, i))
	if errors.Is(err, errAbsent) {
		return &Entry{Format: Format, Key: entryKey(job, i), State: Queued}, record{}, nil
	}
	if err != nil {
		return nil, r, err
	}
	e, err := parseEntry(r)
	return e, r, err
}

// updateEntry changes an entry by compare-and-set. change says whether there is anything to write.
func (q *Queue) updateEntry(ctx context.Context, job string, i int, change func(*Entry) bool) error {
	for {
		e, r, err := q.entry(ctx, job, i)
		if err != nil {
			return err
		}
		before := e.State
		if !change(e) {
			return nil
		}
		if _, err = q.writeEntry(ctx, job, i, e, r.revision); !errors.Is(err, errConflict) {
			if err == nil {
				q.logEdge(job, i, before, e)
			}
			return err
		}
	}
}

func (q *Queue) writeEntry(ctx context.Context, job string, i int, e *Entry, revision uint64) (uint64, error) {
	raw, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	return q.tasks.cas(ctx, entryKey(job, i), revision, raw)
}

func (q *Queue) logEdge(job string, i int, before State, e *Entry) {
	if before != e.State {
		q.log.Info("task changed", "job", job, "index", i, "from", before, "to", e.State, "generation", e.Generation, "attempt", e.Attempt, "node", e.Node, "error", e.Error)
	}
}

// updateEntries changes many entries, some at a time.
func (q *Queue) updateEntries(ctx context.Context, job string, tasks []int, change func(*Entry) bool) error {
	return atOnce(tasks, func(i int) error { return q.updateEntry(ctx, job, i, change) })
}

const inFlight = 16

// atOnce calls fn for all items, inFlight at a time, and gives the first error: the others mostly say the same.
func atOnce[T any](items []T, fn func(T) error) error {
	var group sync.WaitGroup
	var lock sync.Mutex
	var all error
	next := make(chan T)
	for range min(inFlight, len(items)) {
		group.Go(func() {
			for item := range next {
				if err := fn(item); err != nil {
					lock.Lock()
					all = cmp.Or(all, err)
					lock.Unlock()
				}
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	group.Wait()
	return all
}

func failed(op, job string, err error) error {
	if err == nil {
		return nil
	}
	return failure(op, job, err, hintOf(op, err), kindOf(err))
}

func hintOf(op string, err error) string {
	switch {
	case errors.Is(err, ErrNoJob):
		return "vksplat farm ls lists the jobs."
	case errors.Is(err, errAbsent):
		return "Its plan or document is lost: vksplat farm fsck says more."
	case errors.Is(err, ErrForgotten):
		return "vksplat farm delete forgets it to the end."
	case errors.Is(err, ErrRunning):
		return "What runs was begun with what would be made anew: wait for its end, or cancel it first."
	case !errors.Is(err, ErrNothing):
		return ""
	case op == "retry":
		return "With --redo it also does again what succeeded."
	}
	return "vksplat farm show lists its tasks."
}
