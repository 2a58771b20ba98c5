package client

import (
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
)

// CheckInputs reports an input of a job that is not below its root. Where this machine does not know the root, or sees
// nothing in it, the workers find out.
func CheckInputs(roots store.Roots, job *spec.Job, plan *spec.Plan, hint string) error {
	root, err := roots.Open(job.Store.Inputs)
	if err != nil || !store.HasAny(root) {
		return nil
	}
	return local.CheckInputs(root, job, plan, func(int) bool { return true }, hint)
}
