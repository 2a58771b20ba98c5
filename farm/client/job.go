package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/wire"
	"vksplat/internal/fault"
)

// memo is what a list of jobs says about a job.
type memo struct {
	Name     string `json:"name"` // of the job, whose id may be another
	Document flow.Document
	Tasks    int `json:"tasks"`
}

// errRuns is of a job that cannot be submitted as one of its name runs.
var errRuns = errors.New("a job of this name is already running")

// Submit puts a job's document into the store and starts the job. A job with the same document that runs goes on:
// running says so. One that has ended does what is left.
func (f *Farm) Submit(ctx context.Context, roots store.Roots, job *spec.Job, plan *spec.Plan,
	s flow.Settings) (id string, running bool, err error) {
	id = flow.JobID(f.Owner, job.Name)
	d, err := flow.Put(ctx, roots, job, f.Owner)
	if err != nil {
		return id, false, err
	}
	err = f.Conn.Call(ctx, wire.StartAnew(&wire.Start{Workflow: id, Type: &wire.Kind{Name: flow.JobType},
		Queue: wire.QueueOf(flow.FlowQueue), Input: wire.PayloadsOf(flow.JobInput{Document: d, Settings: s}),
		Memo: &wire.Memo{Fields: map[string]*wire.Payload{
			flow.MemoKey: wire.PayloadOf(memo{job.Name, d, len(plan.Tasks)})}},
		// a call that is made again, because its answer was lost, starts no other
		Request: rand.Text()}), nil)
	if wire.CodeOf(err) != wire.Exists {
		return id, false, explain("submit job", id, err)
	}
	there, err := f.find(ctx, id)
	if err != nil {
		return id, false, err
	}
	if there.document == d {
		return id, true, nil
	}
	return id, false, &fault.Error{Op: "submit job", Path: id, Err: fmt.Errorf("%w, with another document", errRuns),
		Hint: "wait for its end, or " + fault.Command("farm cancel") + " it: finished tasks are kept",
		Kind: fault.ErrTryAgain}
}

// find asks the server for a job.
func (f *Farm) find(ctx context.Context, id string) (*Job, error) {
	d, err := f.describe(ctx, id)
	if err != nil {
		return nil, explain("find job", id, err)
	}
	j := jobOf(d.Info)
	return &j, nil
}

// describe asks what the server knows of a workflow.
func (f *Farm) describe(ctx context.Context, id string) (*wire.Description, error) {
	d := &wire.Description{}
	return d, f.Conn.Call(ctx, &wire.Describe{Of: &wire.Execution{Workflow: id}}, d)
}

// Set changes a job that runs.
func (f *Farm) Set(ctx context.Context, id string, c flow.Change) error {
	return f.ended("change job", id, f.Conn.Call(ctx, &wire.Signal{Of: &wire.Execution{Workflow: id},
		Name: flow.SetSignal, Input: wire.PayloadsOf(c), Request: rand.Text()}, nil))
}

// Cancel ends a job: its tasks save first.
func (f *Farm) Cancel(ctx context.Context, id string) error {
	const op = "cancel job"
	if j, err := f.find(ctx, id); err == nil && j.Over() { // the server takes that for canceled
		return hasEnded(op, id)
	}
	return f.ended(op, id, f.Conn.Call(ctx, &wire.Cancel{Of: &wire.Execution{Workflow: id}, Request: rand.Text()}, nil))
}

// ended explains an error about a job that may have ended.
func (f *Farm) ended(op, id string, err error) error {
	if wire.CodeOf(err) == wire.NotFound {
		if _, err := f.find(context.Background(), id); err == nil {
			return hasEnded(op, id)
		}
	}
	return explain(op, id, err)
}

func hasEnded(op, id string) error {
	return &fault.Error{Op: op, Path: id, Err: errors.New("it has ended"),
		Hint: "submit it again to do the rest", Kind: fault.ErrUsage}
}

// Document is where the document and the results of a job are.
func (f *Farm) Document(ctx context.Context, id string) (flow.Document, error) {
	j, err := f.find(ctx, id)
	if err == nil && j.document.Key == "" {
		err = explain("find job", id, &wire.Error{Code: wire.NotFound})
	}
	if err != nil {
		return flow.Document{}, err
	}
	return j.document, nil
}

// CheckInputs reports an input of a job that is not below its root. Where this machine does not know the root, or sees
// nothing in it, the workers find out.
func CheckInputs(roots store.Roots, job *spec.Job, plan *spec.Plan, hint string) error {
	root, err := roots.Open(job.Store.Inputs)
	if err != nil || !store.HasAny(root) {
		return nil
	}
	return local.CheckInputs(root, job, plan, func(int) bool { return true }, hint)
}
