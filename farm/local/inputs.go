package local

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
)

// CheckInputs refuses a job of which an input is not below its root, or is a link that leads out of it; of those tasks
// that are meant. What else is wrong with an input may pass.
func CheckInputs(root store.Root, job *spec.Job, plan *spec.Plan, meant func(task int) bool, hint string) error {
	var tasks []*spec.Task // the first one of each input
	var keys []string
	seen := map[string]bool{}
	for i := range plan.Tasks {
		for _, key := range plan.Tasks[i].Keys() {
			if meant(i) && !seen[key] {
				seen[key] = true
				tasks, keys = append(tasks, &plan.Tasks[i]), append(keys, key)
			}
		}
	}
	errs := make([]error, len(keys))
	var group sync.WaitGroup
	for first := range lookers {
		group.Go(func() {
			for i := first; i < len(keys); i += lookers {
				_, errs[i] = root.Stat(keys[i])
			}
		})
	}
	group.Wait()
	for i, err := range errs {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return job.WrongInput(tasks[i], keys[i], fault.WithHint(task.NoInput(root, keys[i]), hint))
		case errors.Is(err, store.ErrDamaged):
			return job.WrongInput(tasks[i], keys[i], store.Explain("read input", keys[i], fault.Pathless(err)))
		}
	}
	return nil
}

// checkInputs is CheckInputs of what this run is to do.
func (r *runner) checkInputs(ctx context.Context, chosen []bool) error {
	meant := func(i int) bool { return chosen[i] && r.status.Tasks[i].State == Waiting }
	if !slices.ContainsFunc(r.Plan.Tasks, func(t spec.Task) bool { return meant(t.Index) && len(t.Keys()) > 0 }) {
		return nil
	}
	root, err := r.Roots.Open(r.Job.Store.Inputs)
	if err != nil {
		return err
	}
	return CheckInputs(root.Attend(ctx, func(error) {}), r.Job, r.Plan, meant, task.InputHint)
}
