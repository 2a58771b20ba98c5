package desk

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/fault"
)

type jobState string

const (
	stateQueued   jobState = "queued"
	stateRunning  jobState = "running"
	stateStopping jobState = "stopping" // it saves and ends
	stateDone     jobState = "done"
	stateStopped  jobState = "stopped" // by the user or a time limit; a training can be resumed
	stateFailed   jobState = "failed"
)

// lane is the resource that a job occupies.
type lane int

const (
	laneNone    lane = iota - 1
	laneDevice       // the GPU
	laneCores        // most cores, for minutes: photos are compared
	laneExports      // some cores, for seconds
	lanes
)

const mostJobs = 50

// waitHint is the remedy for a job in the way.
const waitHint = "wait until it has ended, or stop it"

// job is a command that runs, will run, or did.
type job struct {
	ID    string   `json:"id"`
	Kind  string   `json:"kind"` // train, capture, export, flight, view
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
	ready  chan struct{}      // closed when its viewer answers
	over   chan struct{}      // closed when it has ended, as err says
	err    error
}

// queue is the jobs, and what they need for themselves. Jobs are lost when it ends; what they wrote is not.
type queue struct {
	ctx     context.Context // of all processes
	program string
	running sync.WaitGroup
	limited func(j *job) bool // says whether a time limit ended a training, which is no error
	changed func()            // called when a job has ended

	mu    sync.Mutex         // guards what follows, and jobs
	jobs  []*job             // oldest first
	last  int                // number of a job
	guest context.CancelFunc // ends the rehearsal that has the device, if one does
}

func (j *job) live() bool {
	return j.State == stateQueued || j.State == stateRunning || j.State == stateStopping
}

// add queues a job and returns its number. No two jobs make the same.
func (q *queue) add(j *job) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.working(j.Made) != nil {
		return "", fault.Usagef(waitHint, "start job: %s is already in progress", j.Made)
	}
	q.jobs = slices.DeleteFunc(q.jobs, func(old *job) bool { // the new job continues what that one did
		return old.Kind == j.Kind && old.Made == j.Made && !old.live()
	})
	q.put(j)
	more := len(q.jobs) - mostJobs
	q.jobs = slices.DeleteFunc(q.jobs, func(old *job) bool {
		if more <= 0 || old.live() {
			return false
		}
		more--
		return true
	})
	q.next()
	return j.ID, nil
}

// put appends a job. q.mu is held.
func (q *queue) put(j *job) {
	q.last++
	j.ID, j.State, j.ready, j.over = strconv.Itoa(q.last), stateQueued, make(chan struct{}), make(chan struct{})
	q.jobs = append(q.jobs, j)
}

// next starts the first queued job of each lane that is free. q.mu is held.
func (q *queue) next() {
	for l := range lanes {
		j := q.first(func(j *job) bool { return j.lane == l && j.State == stateQueued })
		if j == nil || q.first(func(j *job) bool { return j.lane == l && j.stop != nil }) != nil {
			continue
		}
		if l == laneDevice && q.guest != nil {
			q.guest()
		}
		q.start(j)
	}
}

// start runs a job's process, unless all ends. q.mu is held.
func (q *queue) start(j *job) {
	if q.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(q.ctx)
	j.State, j.stop, j.Began = stateRunning, stop, time.Now().Unix()
	q.running.Go(func() {
		err := q.run(ctx, j)
		q.end(j, err, err == nil && j.Kind == kindTrain && q.limited(j))
	})
}

// run runs a job's process until it ends, and applies what it reports.
func (q *queue) run(ctx context.Context, j *job) error {
	c, err := child.Start(ctx, q.program, j.args, child.Options{Apart: true, OnEvent: func(e *child.Event) {
		q.mu.Lock()
		defer q.mu.Unlock()
		j.apply(e)
	}})
	if err != nil {
		return err
	}
	q.mu.Lock()
	j.child = c
	q.mu.Unlock()
	return c.Wait()
}

// end notes how a job ended, and starts the next.
func (q *queue) end(j *job, err error, limited bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked := j.State == stateStopping
	j.stop()
	j.stop, j.Watch, j.Doing, j.Ended, j.err = nil, false, "", time.Now().Unix(), err
	switch {
	case err == nil && !limited:
		j.State = stateDone
	case limited || asked || errors.Is(err, fault.ErrInterrupted):
		j.State = stateStopped
	default:
		j.State, j.Error, j.Hint = stateFailed, forPage(err.Error()), forPage(fault.Hint(err))
	}
	if j.Kind == kindView {
		q.drop(j)
	}
	close(j.over)
	q.changed()
	q.next()
}

// first returns the oldest job that is meant, nil without any. q.mu is held.
func (q *queue) first(meant func(j *job) bool) *job {
	if i := slices.IndexFunc(q.jobs, meant); i >= 0 {
		return q.jobs[i]
	}
	return nil
}

// find returns a job by its number, nil if there is none. q.mu is held.
func (q *queue) find(id string) *job { return q.first(func(j *job) bool { return j.ID == id }) }

// halt removes a job from the queue, or has it save and stop. At once means that its process is killed, which loses
// what was trained since the last checkpoint.
func (q *queue) halt(id string, atOnce bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	j := q.find(id)
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

// drop ends a job that runs, and forgets it. q.mu is held.
func (q *queue) drop(j *job) {
	if j.stop != nil {
		j.stop()
	}
	q.jobs = slices.DeleteFunc(q.jobs, func(other *job) bool { return other == j })
}

// dismiss forgets a job that is over.
func (q *queue) dismiss(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j := q.find(id); j != nil && !j.live() {
		q.drop(j)
	}
}

// working returns the job that writes to a path, nil if there is none. q.mu is held.
func (q *queue) working(path string) *job {
	return q.first(func(j *job) bool { return j.live() && j.Made == path })
}

// lend gives the device to a rehearsal until a job needs it, or it stops. busy says that a job has it.
func (q *queue) lend(ctx context.Context) (part context.Context, stop func(), busy bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	part, q.guest = context.WithCancel(ctx)
	return part, q.guest, slices.ContainsFunc(q.jobs, func(j *job) bool { return j.lane == laneDevice && j.live() })
}

// trainings counts those that run.
func (q *queue) trainings() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range q.jobs {
		if j.stop != nil && j.Kind == kindTrain {
			n++
		}
	}
	return n
}
