package task

import (
	"time"
)

// mostUnsaved bounds the interval of a training's local checkpoints: a crash loses at most that.
const mostUnsaved = 5 * time.Minute

// uploadAgain is the pause after a failed upload.
const uploadAgain = 30 * time.Second

// pace decides when to upload the newest checkpoint, so that the loss of a machine costs at most every and an upload:
// of a training each nth checkpoint as soon as it is written, of pictures all so far at intervals.
type pace struct {
	every time.Duration
	nth   int       // checkpoints to an upload
	next  time.Time // not before
	seen  int       // step of the newest one
	fresh int       // written since the last upload began
}

// newPace paces a task that starts now, from the checkpoint of a step in the store.
func (w *workdir) newPace(now time.Time, stored int) *pace {
	p := &pace{every: w.task.Limits.CheckpointEvery, nth: 1, seen: stored}
	if w.trains() {
		p.nth = int(p.every / w.savesEvery())
		p.fresh = p.nth - 1 // the first goes up at once
	} else {
		p.next = now.Add(p.every)
	}
	return p
}

// uploadDue reports whether to upload the newest checkpoint.
func (p *pace) uploadDue(now time.Time, newest int) bool {
	if newest > p.seen {
		p.seen = newest
		p.fresh++
	}
	return p.fresh >= p.nth && !now.Before(p.next)
}

// begins records the start of an upload.
func (p *pace) begins(now time.Time, trains bool) {
	p.fresh = 0
	if !trains {
		p.next = now.Add(p.every)
	}
}

// failed schedules the next upload after a failed one.
func (p *pace) failed(now time.Time) {
	p.fresh, p.next = p.nth, now.Add(min(p.every, uploadAgain))
}
