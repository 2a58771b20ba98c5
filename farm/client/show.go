package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"vksplat/farm/flow"
	"vksplat/farm/worker"
	"vksplat/internal/fault"
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

var statusOf = map[enumspb.WorkflowExecutionStatus]string{
	enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:   Running,
	enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:    Paused,
	enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED: Done,
	enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:    Failed,
	enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:  Canceled,
}

// Job is what the farm knows of a job.
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
func jobOf(w *workflowpb.WorkflowExecutionInfo) Job {
	j := Job{ID: w.GetExecution().GetWorkflowId(), Status: cmp.Or(statusOf[w.GetStatus()], Ended),
		Began: w.GetStartTime().AsTime()}
	m := memo{Name: j.ID}
	if p := w.GetMemo().GetFields()[memoKey]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, &m) // of another program's workflow
	}
	j.Name, j.Tasks, j.Root, j.document = m.Name, m.Tasks, m.Document.Root, m.Document
	if t := w.GetCloseTime(); t != nil && t.AsTime().Unix() > 0 {
		at := t.AsTime()
		j.Ended = &at
	}
	return j
}

// List lists jobs that run, the newest first, and with all also those that have ended and are still known. It has the
// first of them, as many as limit says, 0 for all; more says whether there are others.
func (f *Farm) List(ctx context.Context, all bool, limit int) (list []Job, more bool, err error) {
	list, more, err = f.list(ctx, all, limit)
	var silent atomic.Bool // nobody runs jobs: each question would take seconds
	parallel(len(list), func(i int) {
		j := &list[i]
		if j.Over() || silent.Load() {
			return
		}
		s, err := f.state(ctx, j.ID)
		if err == nil { // a job that has just ended, or is being planned, has none
			j.take(s)
		} else if isSlow(err) {
			silent.Store(true)
		}
	})
	return list, more, err
}

// pageOfJobs is how many jobs are asked for at a time.
const pageOfJobs = 200

// list is List without the states of jobs that run. The server lists jobs in this order, but clusters may not.
func (f *Farm) list(ctx context.Context, all bool, limit int) (list []Job, more bool, err error) {
	defer func() {
		slices.SortStableFunc(list, func(a, b Job) int {
			switch {
			case a.Over() == b.Over():
				return b.Began.Compare(a.Began)
			case a.Over():
				return 1
			}
			return -1
		})
	}()
	query := "WorkflowType = '" + flow.JobType + "'"
	if !all {
		query += " AND ExecutionStatus = 'Running'"
	}
	for next := []byte(nil); ; {
		r, err := f.SDK.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: f.Namespace,
			Query: query, PageSize: pageOfJobs, NextPageToken: next})
		if err != nil {
			return nil, false, explain("list jobs", f.Address, err)
		}
		for _, w := range r.GetExecutions() {
			if limit > 0 && len(list) == limit {
				return list, true, nil
			}
			list = append(list, jobOf(w))
		}
		if next = r.GetNextPageToken(); len(next) == 0 {
			return list, false, nil
		}
	}
}

// questions is how many are asked at a time, of some jobs about some chunks. The server allows a person 50.
const questions = 6

// parallel calls do for 0 to n-1, some at a time.
func parallel(n int, do func(i int)) {
	var group sync.WaitGroup
	for first := range min(n, questions) {
		group.Go(func() {
			for i := first; i < n; i += questions {
				do(i)
			}
		})
	}
	group.Wait()
}

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
	parallel(len(chunks), func(i int) {
		var chunk flow.State
		if f.query(ctx, flow.ChunkID(id, s.Chunks[i]), &chunk) == nil { // else it has not begun
			chunks[i] = chunk
		}
	})
	for i := range chunks {
		s.Add(&chunks[i])
	}
	if known := s.Done + s.Queued + s.Waiting + s.Failed + s.Skipped; known < s.Tasks {
		s.Waiting += s.Tasks - known
	}
	return s, nil
}

// isSlow says that a question was not answered in time.
func isSlow(err error) bool {
	var slow *serviceerror.DeadlineExceeded
	return errors.As(err, &slow) || errors.Is(err, context.DeadlineExceeded)
}

func (f *Farm) query(ctx context.Context, id string, to *flow.State) error {
	v, err := f.SDK.QueryWorkflow(ctx, id, "", flow.StateQuery)
	if err != nil {
		return err
	}
	return v.Get(to)
}

// Show tells what is known of a job.
func (f *Farm) Show(ctx context.Context, id string) (*Job, error) {
	d, err := f.SDK.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, explain("show job", id, err)
	}
	j := jobOf(d.GetWorkflowExecutionInfo())
	s, err := f.state(ctx, id)
	if isSlow(err) && ctx.Err() == nil {
		return nil, &fault.Error{Op: "show job", Path: id, Err: errors.New("the farm knows it, but nobody runs it"),
			Hint: "a cluster without vksplat-farmd needs a worker with " + fault.Setting("flows") +
				"; else look at what vksplat-farmd says",
			Kind: fault.ErrTryAgain}
	}
	if err != nil {
		return nil, explain("show job", id, err)
	}
	j.take(s)
	if j.Over() {
		if j.Status == Failed {
			end := f.SDK.GetWorkflow(ctx, id, d.GetWorkflowExecutionInfo().GetExecution().GetRunId()).Get(ctx, nil)
			if end != nil {
				why := flow.Explain(end)
				j.Error, j.Hint = why.Error(), fault.Hint(why)
			}
		}
		return &j, nil
	}
	for _, k := range s.Chunks {
		if err := f.now(ctx, flow.ChunkID(id, k), &j); err != nil {
			return nil, explain("show job", id, err)
		}
	}
	slices.SortStableFunc(j.Now, func(a, b Task) int { return a.Begun.Compare(b.Begun) })
	if len(d.GetPendingActivities()) > 0 &&
		d.GetPendingActivities()[0].GetLastFailure() != nil { // its document is planned
		j.Error = d.GetPendingActivities()[0].GetLastFailure().GetMessage()
	}
	return &j, nil
}

// now lists the tasks of a chunk that are queued, run, or are tried again.
func (f *Farm) now(ctx context.Context, chunk string, j *Job) error {
	d, err := f.SDK.DescribeWorkflowExecution(ctx, chunk, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) { // it has not begun
		return nil
	} else if err != nil {
		return err
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() != flow.TaskType {
			continue
		}
		t := Task{Running: a.GetState() != enumspb.PENDING_ACTIVITY_STATE_SCHEDULED,
			Failure: a.GetLastFailure().GetMessage()}
		if a.GetLastStartedTime() != nil {
			t.Begun = a.GetLastStartedTime().AsTime()
		}
		decode(a.GetHeartbeatDetails(), &t.Beat)
		t.Index, _ = flow.IndexOf(a.GetActivityId())
		if t.Task == "" { // no attempt has said anything
			t.Task = fmt.Sprintf("task %d of the document", t.Index)
		}
		switch {
		case a.GetLastFailure().GetTimeoutFailureInfo() != nil:
			t.Failure = "nothing was heard any more of " + cmp.Or(t.Host, "its machine")
		case strings.HasPrefix(t.Failure, "unexpected activity cancel error"): // the SDK's words
			t.Failure = cmp.Or(t.Host, "its machine") + " was told to stop it"
		}
		if t.Running || t.Failure != "" {
			j.Now = append(j.Now, t)
			continue
		}
		if j.Waits == nil {
			j.Waits = map[string]int{}
		}
		j.Waits[a.GetActivityOptions().GetTaskQueue().GetName()]++
	}
	return nil
}

// decode takes in a heartbeat, where there is one that this version understands.
func decode(p *commonpb.Payloads, to *worker.Beat) {
	if p != nil {
		_ = converter.GetDefaultDataConverter().FromPayloads(p, to)
	}
}
