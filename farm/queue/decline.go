package queue

import (
	"context"
	"time"
)

// Decline ends the lease of a task that this worker cannot do, because of why, and that others may be able to. The attempt does not count. The task is
// offered again after the delay.
func (l *Lease) Decline(ctx context.Context, why string, delay time.Duration) error {
	return l.finish(ctx, nak(delay), func(e *Entry) {
		if e.State == Canceling {
			e.State = Canceled
			return
		}
		e.State, e.Message = Queued, why[:min(len(why), maxMessage)]
		e.Used--
	})
}
