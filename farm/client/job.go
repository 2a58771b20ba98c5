package client

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"vksplat/farm/flow"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
)

// memo is what the server tells of a job to whoever lists it.
type memo struct {
	Name     string `json:"name"` // of the job, whose id may be another
	Document flow.Document
	Tasks    int `json:"tasks"`
}

const memoKey = "job"

// ErrRuns is of a job that cannot be submitted as one of its name runs.
var ErrRuns = errors.New("a job of this name runs")

// Submit puts a job's document into the store and starts the job. A job with the same document that runs goes on:
// running says so. One that has ended does what is left.
func (f *Farm) Submit(ctx context.Context, roots store.Roots, job *spec.Job, plan *spec.Plan,
	s flow.Settings) (id string,
	running bool, err error) {
	id = flow.JobID(f.Owner, job.Name)
	d, err := flow.Put(ctx, roots, job)
	if err != nil {
		return id, false, err
	}
	_, err = f.SDK.ExecuteWorkflow(ctx, sdk.StartWorkflowOptions{ID: id, TaskQueue: flow.FlowQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{memoKey: memo{job.Name, d, len(plan.Tasks)}},
	}, flow.JobType, flow.JobInput{Document: d, Settings: s})
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if !errors.As(err, &started) {
		return id, false, explain("submit job", id, err)
	}
	there, err := f.memoOf(ctx, id)
	if err != nil {
		return id, false, err
	}
	if there.Document == d {
		return id, true, nil
	}
	return id, false, &fault.Error{Op: "submit job", Path: id, Err: fmt.Errorf("%w, with another document", ErrRuns),
		Hint: "wait for its end, or " + fault.Command("farm cancel") + " it: what is done stays done",
		Kind: fault.ErrTryAgain}
}

// memoOf is what the server has of a job for people.
func (f *Farm) memoOf(ctx context.Context, id string) (*memo, error) {
	d, err := f.SDK.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, explain("find job", id, err)
	}
	m := &memo{Name: id}
	if p := d.GetWorkflowExecutionInfo().GetMemo().GetFields()[memoKey]; p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, m) // of another program's workflow
	}
	return m, nil
}

// Set changes a job that runs.
func (f *Farm) Set(ctx context.Context, id string, c flow.Change) error {
	err := f.SDK.SignalWorkflow(ctx, id, "", flow.SetSignal, c)
	return f.ended("change job", id, err)
}

// Cancel ends a job: its tasks save first.
func (f *Farm) Cancel(ctx context.Context, id string) error {
	return f.ended("cancel job", id, f.SDK.CancelWorkflow(ctx, id, ""))
}

// ended explains an error about a job that may have ended.
func (f *Farm) ended(op, id string, err error) error {
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		if _, err := f.memoOf(context.Background(), id); err == nil {
			return &fault.Error{Op: op, Path: id, Err: errors.New("it has ended"),
				Hint: "submit it again to do what is left", Kind: fault.ErrUsage}
		}
	}
	return explain(op, id, err)
}

// Document is where the document and the results of a job are.
func (f *Farm) Document(ctx context.Context, id string) (flow.Document, error) {
	m, err := f.memoOf(ctx, id)
	if err == nil && m.Document.Key == "" {
		err = explain("find job", id, serviceerror.NewNotFound("it is no job of ours"))
	}
	if err != nil {
		return flow.Document{}, err
	}
	return m.Document, nil
}
