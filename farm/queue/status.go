package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"vksplat/scene"
)

// JobStatus is a job as tables show it.
type JobStatus struct {
	Head
	State     JobState      `json:"state"`
	Counts    map[State]int `json:"counts"` // of tasks, by state; hides the head's
	Submitted time.Time     `json:"submitted"`
	Changed   time.Time     `json:"changed"` // when its head was written last: for a job that ended, when

	Left  Duration           `json:"left,omitempty"`  // a guess of the time until its last task is done, 0: none
	More  bool               `json:"more,omitempty"`  // beside Left there are tasks of which nothing is known, as none like them has begun
	Rates map[string]float64 `json:"rates,omitempty"` // what its running tasks do a second: "steps" of training, "pictures"
}

// TaskStatus is a task as tables show it. Its Entry's State is what is stored; State is what holds.
type TaskStatus struct {
	Job     string    `json:"job"`
	Index   int       `json:"index"`
	Name    string    `json:"name"`
	Pool    string    `json:"pool"`
	State   State     `json:"state"`
	Inspect bool      `json:"inspect,omitempty"` // waits until somebody has looked and resumes the job
	Entry   Entry     `json:"entry"`
	Changed time.Time `json:"changed"`        // the last write of its entry, zero if there was none
	Left    Duration  `json:"left,omitempty"` // a guess of the time until its last step, 0: none
}

// Change is what Watch reports: one of the two is set.
type Change struct {
	Job  *JobStatus
	Task *TaskStatus
}

const (
	settle   = 5 * time.Millisecond // writes come in groups
	lookOver = 2 * time.Second      // how often a watcher looks without having been told
)

// List returns all jobs, the oldest first.
func (q *Queue) List(ctx context.Context) ([]JobStatus, error) {
	var jobs []JobStatus
	var bad error
	_, err := q.jobs.scan(ctx, "*", 0, func(r record) {
		head, err := parseHead(r.value)
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("job %s: %w", r.key, err))
			return
		}
		if head.Gone {
			return
		}
		jobs = append(jobs, JobStatus{Head: head, State: head.Ended, Counts: head.Counts, Changed: r.at})
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, failure("list jobs", "", err, "", scene.ErrTryAgain)
	}
	for i := range jobs {
		err := q.complete(ctx, &jobs[i])
		if err != nil && (isTransient(err) || ctx.Err() != nil) {
			return nil, failure("list jobs", jobs[i].Name, err, "", scene.ErrTryAgain)
		}
		if err != nil { // nobody misses the others for it
			jobs[i].State = JobBroken
			q.log.Warn("a job cannot be read; farm fsck may help", "job", jobs[i].Name, "cause", err)
		}
	}
	slices.SortFunc(jobs, func(a, b JobStatus) int { return int(int64(a.Age) - int64(b.Age)) })
	return jobs, nil
}

// complete reads what the head of a job does not say.
func (q *Queue) complete(ctx context.Context, job *JobStatus) (err error) {
	if job.State == "" {
		b, err := q.board(ctx, job.Head, 0)
		if err != nil {
			return err
		}
		job.State, job.Counts = b.state(), b.countsCopy()
		b.outlook(job)
	}
	job.Submitted, err = q.submitted(ctx, job.Head)
	return err
}

// Show returns a job with all its tasks.
func (q *Queue) Show(ctx context.Context, job string) (JobStatus, []TaskStatus, error) {
	b, status, err := q.open(ctx, job)
	if err != nil {
		return JobStatus{}, nil, failed("show job", job, err)
	}
	tasks := make([]TaskStatus, len(b.tasks))
	for i := range tasks {
		tasks[i] = b.status(i)
	}
	return status, tasks, nil
}

// Head returns what the queue holds of a job beside its tasks.
func (q *Queue) Head(ctx context.Context, job string) (Head, error) {
	head, _, err := q.head(ctx, job)
	if err != nil {
		err = failure("read job", job, err, "", kindOf(err))
	}
	return head, err
}

// WatchHeads calls fn with all jobs, and with each that changes, until the context ends.
func (q *Queue) WatchHeads(ctx context.Context, fn func(Head)) error {
	const op = "watch jobs"
	told := make(chan struct{}, 1)
	stop, err := q.tell(told, nil, "ev.job.*")
	if err != nil {
		return failure(op, "", err, "", scene.ErrTryAgain)
	}
	defer stop()
	for next := uint64(0); ; {
		next, err = q.jobs.scan(ctx, "*", next, func(r record) {
			if head, err := parseHead(r.value); err == nil && !head.Gone { // else fsck finds it
				fn(head)
			}
		})
		if err != nil {
			return failure(op, "", err, "", scene.ErrTryAgain)
		}
		if err := wait(ctx, told, nodeLife); err != nil {
			return err
		}
	}
}

// Watch calls fn with the job, with each of its tasks, and then with every change, until fn returns an error, which it returns, or the context ends. Of
// several changes of a task in quick succession only the last may be seen.
func (q *Queue) Watch(ctx context.Context, job string, fn func(Change) error) error {
	told := make(chan struct{}, 1)
	stop, err := q.tell(told, nil, "ev.job."+tokenOf(job), "ev.task."+tokenOf(job)+".*")
	if err != nil {
		return failure("watch job", job, err, "", scene.ErrTryAgain)
	}
	defer stop()
	b, status, err := q.open(ctx, job)
	if err != nil {
		return failure("watch job", job, err, "", kindOf(err))
	}
	all := make([]int, len(b.tasks))
	for i := range all {
		all[i] = i
	}
	if err := report(b, status, all, fn); err != nil {
		return err
	}
	for {
		if err := wait(ctx, told, lookOver); err != nil {
			return err
		}
		changed, moved, err := q.refresh(ctx, b)
		if err != nil {
			return failure("watch job", job, err, "", kindOf(err))
		}
		if moved.IsZero() && len(changed) == 0 {
			continue
		}
		status.Head, status.State, status.Counts = b.head, b.state(), b.countsCopy()
		if !moved.IsZero() {
			status.Changed = moved
		}
		b.outlook(&status)
		if err := report(b, status, changed, fn); err != nil {
			return err
		}
	}
}

func report(b *board, status JobStatus, tasks []int, fn func(Change) error) error {
	for _, i := range tasks {
		task := b.status(i)
		if err := fn(Change{Task: &task}); err != nil {
			return err
		}
	}
	return fn(Change{Job: &status})
}

// errSeen ends a Watch that has seen what it waited for.
var errSeen = errors.New("seen")

// Wait returns once the job has ended.
func (q *Queue) Wait(ctx context.Context, job string) (JobStatus, error) {
	var last JobStatus
	err := q.Watch(ctx, job, func(c Change) error {
		if c.Job == nil {
			return nil
		}
		if last = *c.Job; last.Ended != "" {
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		err = nil
	}
	return last, err
}

// Progress calls fn with what running tasks of a job say, of all jobs if job is "", until the context ends. It may miss some; entries hold what was said at
// the last heartbeat.
func (q *Queue) Progress(ctx context.Context, job string, fn func(Progress)) error {
	subject := "prog.>"
	if job != "" {
		subject = "prog." + tokenOf(job) + ".*"
	}
	sub, err := q.nc.Subscribe(subject, func(m *nats.Msg) {
		var p Progress
		if json.Unmarshal(m.Data, &p) == nil {
			fn(p)
		}
	})
	if err != nil {
		return failure("watch progress", job, err, "", scene.ErrTryAgain)
	}
	<-ctx.Done()
	return sub.Unsubscribe()
}

// tell makes told receive whenever one of the subjects does, after a call of note, if there is one, with the subject.
func (q *Queue) tell(told chan<- struct{}, note func(subject string), subjects ...string) (stop func(), err error) {
	var subs []*nats.Subscription
	stop = func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
	}
	for _, subject := range subjects {
		sub, err := q.nc.Subscribe(subject, func(m *nats.Msg) {
			if note != nil {
				note(m.Subject)
			}
			select {
			case told <- struct{}{}:
			default:
			}
		})
		if err != nil {
			stop()
			return nil, err
		}
		subs = append(subs, sub)
	}
	return stop, nil
}

// wait returns when told receives, a little later so that one look finds a group of writes, or after the time.
func wait(ctx context.Context, told <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	case <-told:
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(settle):
		return nil
	}
}

// open reads a job whole.
func (q *Queue) open(ctx context.Context, job string) (*board, JobStatus, error) {
	head, r, err := q.headRecord(ctx, job)
	if err != nil {
		return nil, JobStatus{}, err
	}
	b, err := q.board(ctx, head, r.revision)
	if err != nil {
		return nil, JobStatus{}, err
	}
	status := JobStatus{Head: head, State: b.state(), Counts: b.countsCopy(), Changed: r.at}
	b.outlook(&status)
	status.Submitted, err = q.submitted(ctx, head)
	return b, status, err
}

// board reads plan and entries of a job.
func (q *Queue) board(ctx context.Context, head Head, revision uint64) (*board, error) {
	tasks, err := q.plan(ctx, head)
	if err != nil {
		return nil, err
	}
	b := newBoard(head, revision, tasks)
	_, err = q.readEntries(ctx, b)
	return b, err
}

// readEntries reads what was written since the last time, and returns the tasks that changed, some twice.
func (q *Queue) readEntries(ctx context.Context, b *board) (changed []int, err error) {
	b.next, err = q.tasks.scan(ctx, tokenOf(b.head.Name)+".*", b.next, func(r record) {
		tasks, _ := b.take(r)
		changed = append(changed, tasks...)
	})
	return changed, err
}

// refresh reads head and entries anew, and says when the head was written, zero where it is as it was.
func (q *Queue) refresh(ctx context.Context, b *board) (changed []int, moved time.Time, err error) {
	head, r, err := q.headRecord(ctx, b.head.Name)
	if err != nil {
		return nil, moved, err
	}
	if r.revision > b.revision {
		changed, moved = b.setHead(head, r.revision), r.at
	}
	tasks, err := q.readEntries(ctx, b)
	changed = append(changed, tasks...)
	slices.Sort(changed)
	return slices.Compact(changed), moved, err
}

// take takes an entry as it was read. A task whose entry is damaged counts as failed, so that its job ends and says why.
func (b *board) take(r record) (changed []int, err error) {
	i, err := strconv.Atoi(r.key[strings.LastIndexByte(r.key, '.')+1:])
	if err != nil || i < 0 || i >= len(b.cells) {
		return nil, errors.New("it is of no task")
	}
	entry, err := parseEntry(r)
	if err != nil {
		err = fmt.Errorf("its entry is damaged: %w", err)
		entry = &Entry{State: Failed, Error: err.Error()}
	}
	return append(b.setEntry(i, entry, r.revision, r.at), i), err
}

func parseEntry(r record) (*Entry, error) {
	entry := new(Entry)
	if err := json.Unmarshal(r.value, entry); err != nil {
		return nil, err
	}
	if entry.Format != Format {
		return nil, fmt.Errorf("%w: %d, this program knows %d", ErrFormat, entry.Format, Format)
	}
	if entry.Key != r.key {
		return nil, fmt.Errorf("it is the entry of %q", entry.Key)
	}
	return entry, nil
}

func (b *board) status(i int) TaskStatus {
	c, task := &b.cells[i], &b.tasks[i]
	status := TaskStatus{Job: b.head.Name, Index: i, Name: task.Name, Pool: task.pool(), State: c.state, Inspect: b.inspects(i), Changed: c.at}
	if c.entry != nil {
		status.Entry = *c.entry
	}
	if left, known := c.left(); known {
		status.Left = span(left)
	}
	return status
}

func (b *board) countsCopy() map[State]int {
	counts := maps.Clone(b.counts)
	maps.DeleteFunc(counts, func(_ State, n int) bool { return n == 0 })
	return counts
}

// submitted is the server's stamp of the document of a job.
func (q *Queue) submitted(ctx context.Context, head Head) (time.Time, error) {
	r, err := q.jobs.read(ctx, documentKey(tokenOf(head.Name), head.Document))
	if errors.Is(err, errAbsent) && head.Forgotten {
		err = nil // whoever forgets it has come that far
	}
	return r.at, err
}

// kindOf says whether a job that is not there, or a server, is to blame.
func kindOf(err error) error {
	switch {
	case errors.Is(err, ErrNoJob), errors.Is(err, ErrNoTask), errors.Is(err, ErrForgotten):
		return scene.ErrUsage
	case errors.Is(err, ErrNothing):
		return ErrNothing // neither
	}
	return scene.ErrTryAgain
}
