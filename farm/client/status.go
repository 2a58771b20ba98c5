package client

import (
	"context"
	"path"
	"strings"
	"time"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
)

// Follow finds the newest job whose document is in a folder of a root, and returns a function that tells how far it is.
// It is nil where no such job in the farm.
func (f *Farm) Follow(ctx context.Context, o store.Options, folder string) (
	func(context.Context) (*local.Status, error), error) {
	list, _, err := f.list(ctx, true, 0)
	if err != nil {
		return nil, err
	}
	root, err := store.Open(o)
	if err != nil {
		return nil, err
	}
	for i := range list {
		j := &list[i]
		if !strings.HasPrefix(j.document.Key, folder+"/") {
			continue
		}
		if _, err := root.Stat(j.document.Key); err != nil { // of another root
			continue
		}
		docs := flow.Documents{Roots: store.Roots{j.document.Root: o}}
		p, err := docs.Read(ctx, j.document)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (*local.Status, error) { return f.status(ctx, j.ID, p.Plan) }, nil
	}
	return nil, nil
}

// status is how far a job is, task by task. Which tasks are done the store knows, not the farm: here these wait.
func (f *Farm) status(ctx context.Context, id string, plan *spec.Plan) (*local.Status, error) {
	j, err := f.Show(ctx, id)
	if err != nil {
		return nil, err
	}
	s := &local.Status{Job: j.Name, Began: j.Began, Updated: time.Now().UTC(), Ended: j.Over()}
	for i := range plan.Tasks {
		t := local.TaskStatus{Index: i, Task: plan.Tasks[i].Name, Kind: plan.Tasks[i].Kind.Name, State: local.Waiting}
		switch {
		case j.Over():
			t.State = local.Skipped
		case j.State.Paused:
			t.Message = "the job is paused"
		}
		s.Tasks = append(s.Tasks, t)
	}
	for i := range j.Now {
		n := &j.Now[i]
		if n.Index >= len(s.Tasks) {
			continue
		}
		t := &s.Tasks[n.Index]
		if !n.Running {
			t.State, t.Error = local.Retrying, n.Failure
			continue
		}
		t.State, t.Device = local.Running, path.Join(n.Host, n.Device)
		t.Step, t.Of, t.Rate, t.Unit, t.Message = n.Step, n.Of, n.Rate, n.Unit, n.Message
		t.Seconds = time.Since(n.Begun).Seconds()
	}
	for _, failure := range j.State.Failures {
		if failure.Index < len(s.Tasks) {
			t := &s.Tasks[failure.Index]
			t.State, t.Error, t.Hint = local.Failed, failure.Error, failure.Hint
		}
	}
	return s, nil
}
