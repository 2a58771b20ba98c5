package worker

import (
	"slices"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/task"
)

// slack is how much longer than run-task the queue waits for what run-task watches itself: whoever sees it first can say more.
const slack = 2 * time.Minute

// JobPlan is how the queue sees a job.
func JobPlan(job *spec.Job, owner string) (queue.JobPlan, error) {
	plan, err := job.Plan()
	if err != nil {
		return queue.JobPlan{}, err
	}
	p := queue.JobPlan{Name: job.Name, Document: job.Canonical(), Owner: owner, Priority: queue.Priority(job.Priority), FailFast: !job.Retry.KeepGoing}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		pool := t.Pool
		if pool == "" {
			pool = queue.AnyPool
		}
		q := queue.Task{Name: t.Name, Needs: slices.Clone(t.Needs), Pool: pool, MaxAttempts: t.Retry.MaxAttempts, Backoff: t.Retry.Backoff, BackoffMax: t.Retry.BackoffMax,
			Lease: t.Limits.Lease, Inspect: t.Inspect}
		if task.NeedsDevice(t.Kind) {
			q.Pool, q.Limit = pool+spec.DevicePool, pool
		}
		if t.Priority != job.Priority {
			q.Priority = queue.Priority(t.Priority)
		}
		if t.Limits.StallTimeout > 0 {
			q.Stall = t.Limits.StallTimeout + slack
		}
		if t.Limits.TaskTimeout > 0 {
			q.Timeout = t.Limits.TaskTimeout + slack
		}
		p.Tasks = append(p.Tasks, q)
	}
	return p, nil
}
