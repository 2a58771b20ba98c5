package task

import (
	"time"

	"vksplat/farm/spec"
)

// DeviceUse is what a task takes of its device, as far as its child says.
type DeviceUse struct {
	Busy   *float64 `json:"busy,omitempty"`         // share of the time, 0 to 1; nil: not known
	Bytes  int64    `json:"memory_bytes,omitempty"` // of device memory
	Budget int64    `json:"budget_bytes,omitempty"` // what it may take of that
}

// childEvent is a line of JSON that a child prints.
type childEvent struct {
	Event  string   `json:"event"`
	Step   int      `json:"step"`
	Total  int      `json:"total"`
	Rate   *float64 `json:"steps_per_s"`
	Busy   *float64 `json:"device_busy"`
	Bytes  int64    `json:"device_bytes"`
	Budget int64    `json:"budget_bytes"`
}

// unitOf is what the steps of a kind are, for people; "" where nobody asks how many there are a second.
func unitOf(kind spec.Kind) string {
	switch kind {
	case spec.KindTrain, spec.KindBlock:
		return "steps"
	case spec.KindRender:
		return "pictures"
	}
	return ""
}

// tells takes in what a child says about how far and how fast it is.
func (r *runner) tells(e *childEvent) {
	r.mutex.Lock()
	if e.Budget > 0 {
		r.now.Device.Budget = e.Budget
	}
	if e.Bytes > 0 {
		r.now.Device.Bytes, r.now.Device.Busy = e.Bytes, e.Busy
	}
	if e.Rate != nil {
		r.speed.told, r.now.Rate = true, *e.Rate
	}
	r.mutex.Unlock()
	if e.Total > 0 {
		r.step(e.Step, e.Total)
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
	r.now.Rate, r.now.Device, r.speed = 0, DeviceUse{}, speed{}
}

// speed is how many steps a child does a second, where it does not say so itself: measured over some seconds, and smoothed.
type speed struct {
	told  bool // by the child
	step  int
	since time.Time
}

const (
	speedOver   = 5 * time.Second
	speedWeight = 0.5 // of the last measurement
)

// at takes in a step and returns the rate, which was as given before.
func (p *speed) at(step int, now time.Time, rate float64) float64 {
	if p.told {
		return rate
	}
	if p.since.IsZero() || step < p.step {
		p.step, p.since = step, now
		return rate
	}
	d := now.Sub(p.since)
	if d < speedOver && (rate > 0 || d < speedOver/5 || step == p.step) {
		return rate
	}
	last := float64(step-p.step) / d.Seconds()
	p.step, p.since = step, now
	if rate > 0 {
		last = speedWeight*last + (1-speedWeight)*rate
	}
	return last
}
