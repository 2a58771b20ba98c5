package task

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/wording"
)

// reporter reports the progress of a task.
type reporter struct {
	options *Options
	kind    string
	log     *os.File

	mutex   sync.Mutex // guards the rest
	now     Progress
	waiting string // for the store, and why; "" while it answers
	runs    bool   // a child runs
	doing   string // the stage that the child reported
	speed   speed
	moved   time.Time // of the last progress
	said    time.Time // of the last report
}

// onWait applies why the store is waited for; nil once it answers.
func (r *reporter) onWait(cause error) {
	text := ""
	if cause != nil {
		var file *fs.PathError // without its path: temporary names differ each time
		if errors.As(cause, &file) {
			cause = file.Err
		}
		text = "waiting for the store: " + wording.Printable(cause.Error())
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	news := text != r.waiting
	r.waiting = text
	if news && cause != nil && r.log != nil {
		r.note(text)
	}
	r.report(news)
}

// note writes a line to the log. If the disk is full, writing the results fails too.
func (r *reporter) note(line string) {
	_, _ = r.log.WriteString(strings.TrimRight(time.Now().UTC().Format(logTime)+line, " ") + "\n")
}

// say reports a phase. Without always, at most one report a second is made.
func (r *reporter) say(message string, always bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.now.Message = message
	r.report(always)
}

// report calls Options.Report. The caller holds mutex.
func (r *reporter) report(always bool) {
	if r.options.Report == nil || !always && time.Since(r.said) < time.Second {
		return
	}
	r.said = time.Now()
	p := r.now
	switch {
	case r.waiting != "" && r.runs:
		p.Message += "; its checkpoint is " + r.waiting
	case r.waiting != "":
		p.Message, p.Away = r.waiting, true
	}
	r.options.Report(p)
	r.now.Preview = ""
}

// step applies and reports the child's progress, see say.
func (r *reporter) step(step, of int, always bool) {
	r.mutex.Lock()
	r.now.Step, r.now.Of, r.moved = step, of, time.Now()
	r.now.Rate = r.speed.at(step, r.moved, r.now.Rate)
	doing := cmp.Or(r.doing, r.kind)
	r.mutex.Unlock()
	r.say(doing, always)
}

// alive records a sign of life of the child.
func (r *reporter) alive() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.moved = time.Now()
}

// quiet is the time since the child last gave a sign of life.
func (r *reporter) quiet() time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return time.Since(r.moved)
}

// progress applies what a child reports of how far and how fast it is.
func (r *reporter) progress(e *child.Event) {
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

// childStarts reports a child's command.
func (r *reporter) childStarts(command string) {
	r.mutex.Lock()
	r.runs = true
	r.mutex.Unlock()
	r.say(command, true)
}

// freeDevice reports that the task no longer uses its device, however long the store takes.
func (r *reporter) freeDevice() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.now.Free {
		r.now.Free = true
		r.report(true)
	}
}

// childEnds clears what only a running child has.
func (r *reporter) childEnds() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.runs = false
	r.now.Rate, r.speed = 0, speed{}
}

// speed measures steps a second of a child that does not report a rate.
type speed struct {
	reported bool // by the child
	first    int  // the first known step
	since    time.Time
}

// at applies a step and returns the new rate.
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
