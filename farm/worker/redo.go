package worker

import (
	"vksplat/farm/store"
	"vksplat/farm/task"
)

// clearOld moves results away that an older generation of the task made: somebody wants them anew. gc removes them.
func (r *run) clearOld(outputs store.Root) error {
	return store.Outdate(outputs, task.KeyOf(r.job.Job, r.task), r.lease.Generation)
}
