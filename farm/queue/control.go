package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"vksplat/scene"
)

// Selection names tasks of a job. The zero Selection means all of them.
type Selection struct {
	Tasks  []string // names, or beginnings of names up to a "/": "fly" selects "fly/0001-0050"
	Frames *Frames  // of those, tasks whose name ends in a range of frames that has one of these
	Redo   bool     // Retry: also tasks that succeeded, and what needs them
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
	if !slices.ContainsFunc(tasks, func(i int) bool { return !b.cells[i].state.Ended() && b.cells[i].state != Canceling }) {
		return failed(op, job, nothing("these tasks have ended, or are canceled already"))
	}
	return failed(op, job, q.updateEntries(ctx, job, tasks, cancelEntry))
}

func cancelEntry(e *Entry) bool {
	switch {
	case e.State.Ended(), e.State == Canceling:
		return false
	case e.State.owned():
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
	b, _, err := q.open(ctx, job)
	if err != nil {
		return failed(op, job, err)
	}
	tasks, err := selection.of(b)
	if err != nil {
		return failed(op, job, err)
	}
	if !slices.ContainsFunc(tasks, func(i int) bool { return selection.again(b.cells[i].state) }) {
		return failed(op, job, nothing("no task of these failed or was canceled"))
	}
	if selection.Redo {
		if tasks, err = b.withHeirs(tasks); err != nil {
			return failed(op, job, err)
		}
	}
	if b.head.Canceled {
		if err := q.updateEntries(ctx, job, b.canceledBut(tasks), cancelEntry); err != nil {
			return failed(op, job, err)
		}
	}
	err = q.updateEntries(ctx, job, tasks, func(e *Entry) bool {
		if e.State != Failed && e.State != Canceled && !(selection.Redo && e.State == Succeeded) {
			return false
		}
		e.State, e.Used, e.Manifest, e.Claim = Queued, 0, "", ""
		e.Generation++
		return true
	})
	if err != nil {
		return failed(op, job, err)
	}
	// The head comes last: from now on a reconciler looks at the entries again.
	return failed(op, job, q.updateHead(ctx, job, func(head *Head) bool {
		head.Ended, head.Counts, head.Canceled = "", nil, false
		head.Generation++
		return true
	}))
}

// again says whether Retry does something about a task in this state.
func (s Selection) again(state State) bool {
	return state == Failed || state == Canceled || state == Canceling || s.Redo && state == Succeeded
}

// withHeirs adds what needs the tasks, directly or not, and has succeeded: it was made from what is now made anew.
func (b *board) withHeirs(tasks []int) ([]int, error) {
	taken := map[int]bool{}
	for todo := slices.Clone(tasks); len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if taken[i] {
			continue
		}
		if b.cells[i].state.owned() {
			return nil, fmt.Errorf("task %q is running", b.tasks[i].Name)
		}
		taken[i] = true
		todo = append(todo, b.heirs[i]...)
	}
	all := make([]int, 0, len(taken))
	for i := range taken {
		all = append(all, i)
	}
	slices.Sort(all)
	return all, nil
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

// Delete forgets a job that has ended, its logs too.
func (q *Queue) Delete(ctx context.Context, job string) error {
	const op = "delete"
	head, _, err := q.head(ctx, job)
	if err == nil && head.Ended == "" {
		return failure(op, job, ErrNotEnded, "Cancel it first.", scene.ErrUsage)
	}
	if err != nil {
		return failed(op, job, err)
	}
	return failed(op, job, q.forget(ctx, tokenOf(job)))
}

// forget removes all that is stored under a job's token. Without a head the rest is unreachable, so it goes first; what an interruption leaves, Fsck
// finds.
func (q *Queue) forget(ctx context.Context, token string) error {
	for _, at := range []struct{ stream, subject string }{
		{q.jobs.stream, q.jobs.subject(token)}, {q.jobs.stream, q.jobs.subject(token + ".>")}, {q.previews.stream, q.previews.subject(token + ".*")}, {q.tasks.stream, q.tasks.subject(token + ".*")},
		{q.ctl.stream, q.ctl.subject(endingKey(token))},
		{jobStream, "jobs.*.*." + token + ".*"}, {logStream, "log." + token + ".*"},
	} {
		if err := q.purge(ctx, at.stream, at.subject); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) purge(ctx context.Context, stream, subject string) error {
	return q.retry(ctx, "purge "+subject, func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		return s.Purge(ctx, jetstream.WithPurgeSubject(subject))
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
	case !errors.Is(err, ErrNothing):
		return ""
	case op == "retry":
		return "With --redo it also does again what succeeded."
	}
	return "vksplat farm show lists its tasks."
}
