package queue

import (
	"context"
	"math/rand/v2"
	"time"
)

// refusal is a task that a slot of this worker declined.
type refusal struct {
	until time.Time     // it is not claimed again
	seen  time.Time     // its message came last, zero for never since
	hide  time.Duration // how long that was put back, give or take a half
}

const (
	mostReasons  = 8       // nodes whose reasons an entry holds
	longReason   = 256     // bytes
	mostRefusals = 1 << 16 // tasks of a device
	putBack      = 200 * time.Millisecond
	putBackMost  = time.Minute
	putBackMany  = 64 // so many tasks that a device has declined, and their messages are put back for twice as long
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
			e.stop()
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
	if w.left[device] == nil || len(w.left[device]) >= mostRefusals {
		w.left[device] = map[string]*refusal{} // they are declined again
	}
	w.left[device][key] = &refusal{until: time.Now().Add(keep)}
}

// Reconsider has all slots claim again what they declined: the reason may have gone.
func (w *Worker) Reconsider() {
	w.lock.Lock()
	clear(w.left)
	w.lock.Unlock()
	w.wakeAll()
}

// leaves says how long the message of a task that a slot declined, and that came in a sweep since began, is to be kept from everybody, 0 where the slot may claim it.
// Meanwhile no other worker can see it either, so that it is short, and as long for the next as for the first: each slot of those that ask is as likely to get it.
// But the server gives what was put back before what is new. A message that comes twice in one sweep, as over a slow line, is put back for twice as long, until the slot
// gets past all that it declined.
func (w *Worker) leaves(device, key string, began time.Time) time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	r := w.left[device][key]
	if r == nil {
		return 0
	}
	now := time.Now()
	if now.After(r.until) {
		delete(w.left[device], key)
		return 0
	}
	r.hide = max(r.hide, putBack+putBack*time.Duration(len(w.left[device]))/putBackMany)
	if !r.seen.Before(began) {
		r.hide *= 2
	}
	r.hide, r.seen = min(r.hide, putBackMost), now
	return r.hide/2 + rand.N(r.hide)
}
