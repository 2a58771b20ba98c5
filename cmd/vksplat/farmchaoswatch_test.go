//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vksplat/farm/local"
)

// chaosAttempt is an attempt at a training.
type chaosAttempt struct {
	run, attempt int
	stored       int // the newest checkpoint in the store when it began
	said         []progressAt
}

type progressAt struct {
	at   time.Time
	step int
}

type span struct{ from, to time.Time }

// hear takes in what a training says. The caller holds lock.
func (c *chaos) hear(t *local.TaskStatus) {
	if !strings.HasPrefix(t.Task, "model") || t.State != local.Running {
		return
	}
	list := c.watched[t.Task]
	if len(list) == 0 || list[len(list)-1].run != c.runs || list[len(list)-1].attempt != t.Attempts {
		list = append(list, &chaosAttempt{run: c.runs, attempt: t.Attempts, stored: c.stored(t.Task)})
		c.watched[t.Task] = list
	}
	a := list[len(list)-1]
	a.said = append(a.said, progressAt{time.Now(), t.Step})
}

// stored is the step of the newest checkpoint of a training in the store.
func (c *chaos) stored(task string) (newest int) {
	// the pattern is right
	names, _ := filepath.Glob(filepath.Join(c.outputs(), chaosJob, task, "ckpt", "a*", "step-*.json"))
	for _, name := range names {
		var step int
		if _, err := fmt.Sscanf(filepath.Base(name), "step-%d.json", &step); err == nil {
			newest = max(newest, step)
		}
	}
	return newest
}

// start is the first step that an attempt said it was at; 0 for one that came to none.
func (a *chaosAttempt) start() int {
	for _, s := range a.said {
		if s.step > 0 {
			return s.step
		}
	}
	return 0
}

// lost is how long an attempt worked on steps after one: at most, as the word before that step may be older. A pause
// between two words counts as what it takes to say them.
func (a *chaosAttempt) lost(step int) (sum time.Duration) {
	for i, s := range a.said {
		if i > 0 && s.step > step {
			sum += min(s.at.Sub(a.said[i-1].at), 3*time.Second/2)
		}
	}
	return sum
}

// chaosLost is the most work that may be done anew: a checkpoint is written within one interval, and uploaded within
// another. The rest is for a busy machine.
const chaosLost = 2*chaosUpload + 10*time.Second

// judgeTakeovers wants every attempt to resume from the newest checkpoint that the store had before it, and none to
// have repeated more than two intervals' work. At least so many must have resumed.
func (c *chaos) judgeTakeovers(least int) {
	pairs, resumed, worst := 0, 0, time.Duration(0)
	for name, list := range c.watched {
		var before *chaosAttempt
		for _, a := range list {
			start := a.start()
			if start == 0 {
				continue // it came to nothing
			}
			if a.stored > 0 {
				resumed++
			}
			if start < a.stored {
				c.t.Errorf("%s, run %d, attempt %d was first at step %d, though the store had a checkpoint of step %d",
					name, a.run, a.attempt, start, a.stored)
			}
			if before != nil {
				pairs++
				lost := before.lost(start)
				worst = max(worst, lost)
				if lost > chaosLost && !c.isOut(before.said[0].at, a.said[0].at) {
					c.t.Errorf("%s, run %d, attempt %d began at step %d, which was %v before the end of the one before",
						name, a.run, a.attempt, start, lost)
				}
			}
			before = a
		}
	}
	c.t.Logf("%d attempts at trainings resumed from the store's checkpoints; of %d pairs of attempts the worst "+
		"repeated %v of work", resumed, pairs, worst.Round(10*time.Millisecond))
	if min(pairs, resumed) < least {
		c.t.Error("too few trainings resumed: nothing was tested")
	}
}

// telling counts the takeovers that could have lost more than they may.
func (c *chaos) telling() (n int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, list := range c.watched {
		for i, a := range list {
			if i > 0 && a.start() > 0 && list[i-1].lost(0) > chaosLost {
				n++
			}
		}
	}
	return n
}

// isOut says whether there was an outage between two times.
func (c *chaos) isOut(from, to time.Time) bool {
	return slices.ContainsFunc(c.outages, func(s span) bool {
		return s.from.Before(to) &&
			s.to.Add(chaosUpload).After(from)
	})
}
