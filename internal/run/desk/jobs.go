package desk

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

// jobState is how far a job is.
type jobState string

// The states.
const (
	stateQueued   jobState = "queued"
	stateRunning  jobState = "running"
	stateStopping jobState = "stopping" // it saves and ends
	stateDone     jobState = "done"
	stateStopped  jobState = "stopped" // by the user or a time limit; a training can be resumed
	stateFailed   jobState = "failed"
)

// lane is what a job needs for itself.
type lane int

const (
	laneDevice  lane = iota // the GPU
	laneCores               // most cores, for minutes: photos are compared
	laneExports             // some cores, for seconds
	lanes
)

// mostJobs are remembered.
const mostJobs = 50

// waitHint is what helps against a job in the way.
const waitHint = "wait until it has ended, or stop it"

// job is a command that runs, will run, or did.
type job struct {
	ID    string   `json:"id"`
	Kind  string   `json:"kind"` // train, capture, export, flight
	Title string   `json:"title"`
	State jobState `json:"state"`
	Scene string   `json:"scene,omitempty"` // path of the capture, or of what is captured
	Run   string   `json:"run,omitempty"`   // path of the run that it trains or uses
	Made  string   `json:"made,omitempty"`  // path of what it makes
	numbers

	Error    string   `json:"error,omitempty"`
	Hint     string   `json:"hint,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Watch    bool     `json:"watch"` // its viewer answers

	lane   lane
	args   []string
	viewer relayOnce
	stop   context.CancelFunc // nil: it does not run
	child  *child.Child       // nil until it has started
}

// live reports whether a job is not over.
func (j *job) live() bool {
	return j.State == stateQueued || j.State == stateRunning || j.State == stateStopping
}

// add queues a job and returns its number. No two jobs make the same.
func (d *desk) add(j *job) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.working(j.Made) != nil {
		return "", fault.Usagef(waitHint, "start job: %s is being made", j.Made)
	}
	d.jobs = slices.DeleteFunc(d.jobs, func(old *job) bool { // the new job goes on with what that one did
		return old.Kind == j.Kind && old.Made == j.Made && !old.live()
	})
	d.last++
	j.ID, j.State = strconv.Itoa(d.last), stateQueued
	d.jobs = append(d.jobs, j)
	for i := 0; len(d.jobs) > mostJobs && i < len(d.jobs); {
		if d.jobs[i].live() {
			i++
		} else {
			d.jobs = slices.Delete(d.jobs, i, i+1)
		}
	}
	d.next()
	return j.ID, nil
}

// next starts the first queued job of each lane that is free. d.mu is held.
func (d *desk) next() {
	for l := range lanes {
		busy := slices.ContainsFunc(d.jobs, func(j *job) bool { return j.lane == l && j.stop != nil })
		i := slices.IndexFunc(d.jobs, func(j *job) bool { return j.lane == l && j.State == stateQueued })
		if busy || i < 0 || d.ctx.Err() != nil {
			continue
		}
		if l == laneDevice {
			d.endRehearsal()
		}
		j := d.jobs[i]
		ctx, stop := context.WithCancel(d.ctx)
		j.State, j.stop, j.Began = stateRunning, stop, time.Now().Unix()
		d.running.Go(func() { d.carryOut(ctx, j) })
	}
}

// carryOut runs a job's command until it ends.
func (d *desk) carryOut(ctx context.Context, j *job) {
	err := d.runJob(ctx, j)
	limited := err == nil && j.Kind == kindTrain && d.endedEarly(j.Made)
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := j.State == stateStopping
	j.stop()
	j.stop, j.Watch, j.Doing, j.Ended = nil, false, "", time.Now().Unix()
	switch {
	case err == nil && !limited:
		j.State = stateDone
	case limited || asked || errors.Is(err, fault.ErrInterrupted):
		j.State = stateStopped
	default:
		j.State, j.Error, j.Hint = stateFailed, forPageAtLeast(err.Error()), forPage(fault.Hint(err))
	}
	d.seen.forget()
	d.next()
}

// runJob runs a job's process and applies what it reports.
func (d *desk) runJob(ctx context.Context, j *job) error {
	c, err := child.Start(ctx, d.Program, j.args, child.Options{Apart: true, OnEvent: func(e *child.Event) {
		d.mu.Lock()
		defer d.mu.Unlock()
		j.apply(e)
	}})
	if err != nil {
		return err
	}
	d.mu.Lock()
	j.child = c
	d.mu.Unlock()
	return c.Wait()
}

// endedEarly reports whether a training's time limit ended it, which is no error.
func (d *desk) endedEarly(run string) bool {
	var st output.Stats
	if dir, err := d.absolute(run); err == nil {
		d.readRecord(filepath.Join(dir, output.StatsFile), &st)
	}
	return st.Interrupted
}

// find returns a job by its number, nil if there is none. d.mu is held.
func (d *desk) find(id string) *job {
	for _, j := range d.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// halt takes a job out of the queue, or has it save and stop. At once means that its process is killed, which loses
// what was trained since the last checkpoint.
func (d *desk) halt(id string, atOnce bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.find(id)
	switch {
	case j == nil:
		return fault.Usagef("", "stop job: there is no job %.20q", id)
	case j.State == stateQueued:
		j.State = stateStopped
	case j.stop != nil:
		j.State = stateStopping
		j.stop()
		if atOnce && j.child != nil {
			j.child.Kill()
		}
	}
	return nil
}

// dismiss forgets a job that is over.
func (d *desk) dismiss(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs = slices.DeleteFunc(d.jobs, func(j *job) bool { return j.ID == id && !j.live() })
}

// working returns the job that writes to a path, nil if there is none. d.mu is held.
func (d *desk) working(path string) *job {
	for _, j := range d.jobs {
		if j.live() && j.Made == path {
			return j
		}
	}
	return nil
}
