package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vksplat/farm/flow"
	"vksplat/farm/wire"
	"vksplat/farm/worker"
	"vksplat/internal/fault"
	"vksplat/internal/parallel"
)

// Status of a job.
const (
	Running  = "running"
	Paused   = "paused"
	Done     = "done"
	Failed   = "failed"
	Canceled = "canceled"
	Ended    = "ended by an administrator"
)

var statusOf = map[int]string{
	wire.StatusRunning:   Running,
	wire.StatusPaused:    Paused,
	wire.StatusCompleted: Done,
	wire.StatusFailed:    Failed,
	wire.StatusCanceled:  Canceled,
}

// Job is the farm's record of a job.
type Job struct {
	ID     string     `json:"id"`
	Name   string     `json:"job"`
	Status string     `json:"status"`
	Began  time.Time  `json:"began"`
	Ended  *time.Time `json:"ended,omitempty"`
	Tasks  int        `json:"tasks"`

	State *flow.State `json:"state,omitempty"` // of a list: of jobs that run alone
	Error string      `json:"error,omitempty"`
	Hint  string      `json:"hint,omitempty"`
	Now   []Task      `json:"now,omitempty"` // tasks that run, or are tried again
	// tasks that no machine has taken, by their queue, as in pool/any/gpu
	Waits map[string]int `json:"waits,omitempty"`
	Root  string         `json:"root,omitempty"`

	document flow.Document
}

// Over says that the job has ended.
func (j *Job) Over() bool { return j.Ended != nil }

// Task is one that runs, or is tried again.
type Task struct {
	worker.Beat
	Index   int       `json:"index"` // in the order of the document
	Running bool      `json:"running"`
	Begun   time.Time `json:"begun,omitzero"`
	Failure string    `json:"failure,omitempty"` // of the last attempt
}

// jobOf takes in what the server says of a workflow.
func jobOf(w *wire.Info) Job {
	j := Job{ID: w.GetExecution().GetWorkflow(), Status: cmp.Or(statusOf[int(w.GetStatus())], Ended),
		Began: w.GetStart().Time()}
	m := memo{Name: j.ID}
	_ = w.GetMemo().GetFields()[flow.MemoKey].Read(&m) // another program's workflow has none
	j.Name, j.Tasks, j.Root, j.document = m.Name, m.Tasks, m.Document.Root, m.Document
	if at := w.GetClose().Time(); at.Unix() > 0 {
		j.Ended = &at
	}
	return j
}

// List lists jobs that run, the newest first, and with all also those that have ended and are still known. It has the
// first of them, as many as limit says, 0 for all; more says whether there are others.
func (f *Farm) List(ctx context.Context, all bool, limit int) (list []Job, more bool, err error) {
	list, more, err = f.list(ctx, all, limit)
	_ = parallel.Limited(len(list), questions, func(i int) error {
		j := &list[i]
		if j.Over() {
			return nil
		}
		s, err := f.state(ctx, j.ID)
		if err == nil { // a job that has just ended, or is being planned, has none
			j.take(s)
		} else if wire.CodeOf(err) == wire.Slow { // nobody runs jobs: each question would take seconds
			return err
		}
		return nil
	})
	return list, more, err
}

// Sort sorts jobs: those first that are not over, and of these the newest.
func Sort(list []Job) {
	slices.SortStableFunc(list, func(a, b Job) int {
		switch {
		case a.Over() == b.Over():
			return b.Began.Compare(a.Began)
		case a.Over():
			return 1
		}
		return -1
	})
}

// pageOfJobs is how many jobs are asked for at a time.
const pageOfJobs = 200

// list is List without the states of jobs that run. The server lists jobs in this order, but clusters may not.
func (f *Farm) list(ctx context.Context, all bool, limit int) (list []Job, more bool, err error) {
	defer func() { Sort(list) }()
	query := "WorkflowType = '" + flow.JobType + "'"
	if !all {
		query += " AND ExecutionStatus = 'Running'"
	}
	for next := []byte(nil); ; {
		var r wire.Listed
		err := f.Conn.Call(ctx, &wire.List{Query: query, Size: pageOfJobs, Next: next}, &r)
		if err != nil {
			return nil, false, explain("list jobs", f.Address, err)
		}
		for _, w := range r.Workflows {
			if limit > 0 && len(list) == limit {
				return list, true, nil
			}
			list = append(list, jobOf(w))
		}
		if next = r.Next; len(next) == 0 {
			return list, false, nil
		}
	}
}

// questions is how many are asked at a time, of some jobs about some chunks. The server allows a person 50.
const questions = 6

// take takes in a job's state.
func (j *Job) take(s *flow.State) {
	j.State, j.Tasks = s, max(j.Tasks, s.Tasks)
	if !j.Over() && s.Paused {
		j.Status = Paused
	}
}

// state asks a job how far it is, and its chunks that run.
func (f *Farm) state(ctx context.Context, id string) (*flow.State, error) {
	s := &flow.State{}
	if err := f.query(ctx, id, s); err != nil {
		return nil, err
	}
	chunks := make([]flow.State, len(s.Chunks))
	_ = parallel.Limited(len(chunks), questions, func(i int) error {
		var chunk flow.State
		if f.query(ctx, flow.ChunkID(id, s.Chunks[i]), &chunk) == nil { // else it has not begun
			chunks[i] = chunk
		}
		return nil
	})
	for i := range chunks {
		s.Add(&chunks[i])
	}
	if known := s.Done + s.Queued + s.Waiting + s.Failed + s.Skipped; known < s.Tasks {
		s.Waiting += s.Tasks - known
	}
	return s, nil
}

func (f *Farm) query(ctx context.Context, id string, to *flow.State) error {
	var r wire.Queried
	ask := &wire.Query{Of: &wire.Execution{Workflow: id}, Query: &wire.Kind{Name: flow.StateQuery}}
	if err := f.Conn.Call(ctx, ask, &r); err != nil {
		return err
	}
	return r.Result.Read(to)
}

// Show tells what is known of a job.
func (f *Farm) Show(ctx context.Context, id string) (*Job, error) {
	d, err := f.describe(ctx, id)
	if err != nil {
		return nil, explain("show job", id, err)
	}
	j := jobOf(d.Info)
	s, err := f.state(ctx, id)
	if wire.CodeOf(err) == wire.Slow && ctx.Err() == nil {
		return nil, &fault.Error{Op: "show job", Path: id,
			Err: errors.New("the farm has it, but no server is running it"),
			Hint: "on your own cluster, vksplat-farmd flows must be running; otherwise see the messages of " +
				"vksplat-farmd",
			Kind: fault.ErrTryAgain}
	}
	if err != nil {
		return nil, explain("show job", id, err)
	}
	j.take(s)
	if j.Over() {
		if j.Status == Failed {
			j.Error, j.Hint = f.failure(ctx, d.GetInfo().GetExecution())
		}
		return &j, nil
	}
	for _, k := range s.Chunks {
		if err := f.now(ctx, flow.ChunkID(id, k), &j); err != nil {
			return nil, explain("show job", id, err)
		}
	}
	slices.SortStableFunc(j.Now, func(a, b Task) int { return a.Begun.Compare(b.Begun) })
	if len(d.Activities) > 0 && d.Activities[0].Failure != nil { // its document is planned
		j.Error = d.Activities[0].Failure.Message
	}
	return &j, nil
}

// failure says why a job has failed.
func (f *Farm) failure(ctx context.Context, of *wire.Execution) (text, hint string) {
	var r wire.Events
	if err := f.Conn.Call(ctx, wire.End(of), &r); err != nil {
		return err.Error(), ""
	}
	for _, e := range r.GetHistory().GetEvents() {
		if e.Failed != nil {
			return e.Failed.Failure.Explain()
		}
	}
	return "", ""
}

// now lists the tasks of a chunk that are queued, run, or are tried again.
func (f *Farm) now(ctx context.Context, chunk string, j *Job) error {
	d, err := f.describe(ctx, chunk)
	if wire.CodeOf(err) == wire.NotFound { // it has not begun
		return nil
	} else if err != nil {
		return err
	}
	for _, a := range d.Activities {
		if a.GetType().GetName() != flow.TaskType {
			continue
		}
		t := Task{Running: a.State != wire.ActivityScheduled, Begun: a.Started.Time()}
		_ = a.Beat.Read(&t.Beat) // there may be none, or of another version
		t.Index, _ = flow.IndexOf(a.Activity)
		if t.Task == "" { // no attempt has said anything
			t.Task = fmt.Sprintf("task %d of the document", t.Index)
		}
		if a.Failure != nil {
			t.Failure = a.Failure.Message
			if a.Failure.Timeout != nil {
				t.Failure = "lost contact with " + cmp.Or(t.Host, "its machine")
			}
		}
		if t.Running || t.Failure != "" {
			j.Now = append(j.Now, t)
			continue
		}
		if j.Waits == nil {
			j.Waits = map[string]int{}
		}
		if queue := a.GetOptions().GetQueue(); queue != nil {
			j.Waits[queue.Name]++
		}
	}
	return nil
}
