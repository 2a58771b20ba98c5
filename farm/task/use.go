package task

import (
	"time"

	"vksplat/internal/child"
)

// unit is what the task's steps are, for people; "" where nobody asks how many there are a second.
func (r *runner) unit() string {
	switch {
	case r.task.Kind.Trains:
		return "steps"
	case r.task.Kind.Draws:
		return "pictures"
	}
	return ""
}

// progress applies what a child reports of how far and how fast it is.
func (r *runner) progress(e *child.Event) {
	r.mutex.Lock()
	if e.Rate > 0 {
		r.speed.reported, r.now.Rate = true, e.Rate
	}
	begins := e.Stage != r.doing
	if begins {
		r.doing, r.speed, r.now.Rate = e.Stage, speed{}, 0
	}
	r.mutex.Unlock()
	if e.Total > 0 || e.Stage != "" {
		r.step(e.Step, e.Total, begins)
	}
}

// begins says that a child does.
func (r *runner) begins(command string) {
	r.mutex.Lock()
	r.runs = true
	r.mutex.Unlock()
	r.say(command, true)
}

// leavesDevice says that no child will use the device any more: it is another's, however long the store takes.
func (r *runner) leavesDevice() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.now.Free {
		r.now.Free = true
		r.report(true)
	}
}

// idles says that no child runs.
func (r *runner) idles() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.runs = false
	r.now.Rate, r.speed = 0, speed{}
}

// speed is how many steps a child does a second, where it does not say so itself.
type speed struct {
	reported bool // by the child
	first    int  // the first step that is known
	since    time.Time
}

// at takes in a step and returns the rate, which was as given before.
func (p *speed) at(step int, now time.Time, rate float64) float64 {
	if p.reported {
		return rate
	}
	if p.since.IsZero() {
		p.first, p.since = step, now
	}
	if d := now.Sub(p.since); d >= time.Second {
		return float64(step-p.first) / d.Seconds()
	}
	return rate
}
