package client

import (
	"errors"
	"fmt"
	"io/fs"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
)

// CheckInputs reports an input of a job that is not below its root. Where this machine does not know the root, or sees
// nothing in it, the workers find out.
func CheckInputs(roots store.Roots, job *spec.Job, plan *spec.Plan) error {
	if _, known := roots[job.Store.Inputs]; !known {
		return nil
	}
	root, err := roots.Open(job.Store.Inputs)
	if err != nil || !store.HasAny(root) {
		return nil
	}
	var tasks []*spec.Task // the first one of each input
	var keys []string
	seen := map[string]bool{}
	for i := range plan.Tasks {
		for _, key := range plan.Tasks[i].Keys() {
			if !seen[key] {
				seen[key] = true
				tasks, keys = append(tasks, &plan.Tasks[i]), append(keys, key)
			}
		}
	}
	missing := make([]bool, len(keys))
	parallel(len(keys), func(i int) {
		_, err := root.Stat(keys[i])
		missing[i] = errors.Is(err, fs.ErrNotExist) // what else is wrong may pass
	})
	for i := range keys {
		if missing[i] {
			return job.WrongTask(tasks[i], "", fault.WithHint(fmt.Errorf("there is no input %q below the root %s, %s",
				keys[i], job.Store.Inputs, root), "put it there, or correct the key; to submit the job before its "+
				"inputs are there, add "+fault.Setting("paused")))
		}
	}
	return nil
}
