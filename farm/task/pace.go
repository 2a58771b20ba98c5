package task

import (
	"time"
)

// mostUnsaved is the longest time between two checkpoints that a training writes to the local disk: a crash on one
// machine costs that.
const mostUnsaved = 5 * time.Minute

// uploadAgain is how long after an upload that failed the next one begins.
const uploadAgain = 30 * time.Second

// pace says when the newest checkpoint goes up: such that after a crash of the machine at most the time every is lost,
// and what an upload takes. Of a training each n-th checkpoint goes up as soon as it is written: one that waited would
// be older than it need be. Of pictures, which come all the time, those that there are.
type pace struct {
	every time.Duration
	nth   int       // checkpoints to an upload
	next  time.Time // not before
	seen  int       // step of the newest one
	fresh int       // that were written since the last upload began
}

// newPace is that of a task which begins now with what the store has of a step.
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

// due says whether an upload should begin, while the newest checkpoint is of that step.
func (p *pace) due(now time.Time, newest int) bool {
	if newest > p.seen {
		p.seen = newest
		p.fresh++
	}
	return p.fresh >= p.nth && !now.Before(p.next)
}

// begins notes that an upload does.
func (p *pace) begins(now time.Time, trains bool) {
	p.fresh = 0
	if !trains {
		p.next = now.Add(p.every)
	}
}

// failed has the next upload make good for one that failed.
func (p *pace) failed(now time.Time) {
	p.fresh, p.next = p.nth, now.Add(min(p.every, uploadAgain))
}
