package local

import (
	"errors"
	"io/fs"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
	"vksplat/internal/parallel"
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
	return parallel.Limited(len(keys), lookers, func(i int) error {
		_, err := root.Stat(keys[i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return job.WrongInput(tasks[i], keys[i], fault.WithHint(task.NoInput(root, keys[i]), hint))
		case errors.Is(err, store.ErrDamaged):
			return job.WrongInput(tasks[i], keys[i], store.Explain("read input", keys[i], fault.Pathless(err)))
		}
		return nil
	})
}
