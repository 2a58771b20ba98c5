package queue

import (
	"context"
	"time"
)

// refusal is a task that a slot of this worker declined.
type refusal struct {
	until time.Time // it is not claimed again
	times int       // its message was put back since
}

const (
	mostReasons  = 8       // nodes whose reasons an entry holds
	longReason   = 256     // bytes
	mostRefusals = 1 << 16 // tasks
	putBack      = time.Second
	putBackMost  = 5 * time.Second
)

// Decline ends the lease of a task that cannot be done on this worker's node and device, because of why, and that others may be able to do. The attempt does not
// count. Others are offered the task at once, this one once keep is over.
func (l *Lease) Decline(ctx context.Context, why string, keep time.Duration) error {
	why = why[:min(len(why), longReason)]
	l.writing.Lock()
	device := l.entry.Device
	l.writing.Unlock()
	l.w.leave(device, entryKey(l.Job, l.Index), keep)
	return l.finish(ctx, nak(0), func(e *Entry) {
		if e.State == Canceling {
			e.State = Canceled
			return
		}
		e.State, e.Message = Queued, why
		e.decline(e.Node, why)
		e.Used--
	})
}

// decline notes a node's reason. Entries are shared, so the table is made anew.
func (e *Entry) decline(node, why string) {
	reasons := map[string]string{node: why}
	for other, reason := range e.Declined {
		if len(reasons) < mostReasons && other != node {
			reasons[other] = reason
		}
	}
	e.Declined = reasons
}

// leave has a slot not claim a task for a while.
func (w *Worker) leave(device, key string, keep time.Duration) {
	w.lock.Lock()
	defer w.lock.Unlock()
	now := time.Now()
	if len(w.left) >= mostRefusals {
		clear(w.left) // they are declined again
	}
	w.left[device+"\x00"+key] = &refusal{until: now.Add(keep)}
}

// leaves says how long the message of a task that a slot declined is to be kept from everybody, 0 where the slot may claim it. Meanwhile no other worker can see it
// either, so that it is short; but when nobody takes it for long, messages should not go round and round.
func (w *Worker) leaves(device, key string) time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	id := device + "\x00" + key
	r := w.left[id]
	if r == nil {
		return 0
	}
	if time.Now().After(r.until) {
		delete(w.left, id)
		return 0
	}
	r.times++
	return min(time.Duration(r.times)*putBack, putBackMost)
}
