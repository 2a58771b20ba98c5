package queue

import (
	"context"

	"vksplat/scene"
)

// Heads returns what the queue holds of all jobs beside their tasks, but for those that cannot be read: Fsck finds them.
func (q *Queue) Heads(ctx context.Context) (list []Head, err error) {
	_, err = q.jobs.scan(ctx, "*", 0, func(r record) {
		if head, err := parseHead(r.value); err == nil {
			list = append(list, head)
		}
	})
	if err != nil {
		return nil, failure("list jobs", "", err, "", scene.ErrTryAgain)
	}
	return list, nil
}
