package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
)

// Beat is what a heartbeat tells: how far the task is, and what the next attempt has to know of this one.
type Beat struct {
	task.Progress
	Host   string `json:"host"`
	Device string `json:"device,omitempty"`
	Tally  Tally  `json:"tally"`
}

// Tally counts attempts at a task. Temporal's own number counts those as well that were given back.
type Tally struct {
	Failed  int  `json:"failed,omitempty"`  // attempts that count
	Refused int  `json:"refused,omitempty"` // attempts that this or that machine was not set up for
	Open    bool `json:"open,omitempty"`    // the attempt has not said how it ended
	Best    int  `json:"best,omitempty"`    // the furthest step that attempts came to which said nothing in the end
}

// mostRefused is how often machines may say that they are not set up for a task, until that counts as its failure: an
// input may be missing on one machine, whose share is not mounted, or on all.
const mostRefused = 5

// attempt is a task that runs here.
type attempt struct {
	*place
	ctx  context.Context
	in   *flow.TaskInput
	task *spec.Task

	showing atomic.Bool // a picture is on its way to the store
	mutex   sync.Mutex
	beat    Beat
}

// perform is the activity.
func (p *place) perform(ctx context.Context, in flow.TaskInput) error {
	p.running.Add(1)
	defer p.running.Done()
	permit := p.slots.current()
	a := &attempt{place: p, ctx: ctx, in: &in, beat: Beat{Host: p.host, Tally: Tally{Failed: in.Failed}}}
	if p.device != nil {
		a.beat.Device = p.device.Name
	}
	a.beat.Task, a.beat.Message = in.Task, "begins"
	vanished := a.recall()
	a.send()
	defer a.keepAlive()()
	o, err := a.options()
	if err != nil {
		return a.end(err)
	}
	if vanished && a.beat.Tally.Failed >= a.task.Retry.MaxAttempts {
		return a.final(&fault.Error{Op: "run task", Path: in.Task,
			Hint: "look at the task's log, and at the machines it " +
				"ran on", Err: fmt.Errorf("%d attempts ended without a word: their workers were killed, or lost the farm",
				a.beat.Tally.Failed)})
	}
	if release, ok := p.holds(ctx, in.Document.Root+"/"+in.Document.Key+"/"+in.Task); !ok {
		return a.end(task.ErrStopped)
	} else {
		defer release()
	}
	o.Report = func(progress task.Progress) {
		if progress.Free && p.device != nil && permit != nil {
			p.slots.leaves(permit)
		}
		if progress.Preview != "" {
			a.show(o.Job.Name, progress.Preview)
		}
		a.mutex.Lock()
		a.beat.Progress = progress
		a.beat.Preview = "" // a file of this machine
		a.mutex.Unlock()
		a.send()
	}
	p.say(in.Task + ": begins")
	inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(task.ErrStopped) })()
	defer context.AfterFunc(p.stopping, func() { stop(task.ErrStopped) })()
	_, err = p.do(inner, *o)
	return a.end(err)
}

func (w *worker) say(text string) {
	if w.Note != nil {
		w.Note(text)
	}
}

// recall takes in what earlier attempts said. One that said nothing in the end counts, unless it came further than
// those before: its worker was killed, and the task need not be to blame.
func (a *attempt) recall() (vanished bool) {
	var before Beat
	if !activity.HasHeartbeatDetails(a.ctx) || activity.GetHeartbeatDetails(a.ctx, &before) != nil {
		a.beat.Tally.Open = true
		return false
	}
	t := before.Tally
	if t.Open {
		if before.Step > t.Best {
			t.Best = before.Step
		} else {
			t.Failed++
		}
		vanished = true
	}
	t.Open = true
	a.beat.Tally = t
	return vanished
}

// show puts a small picture into the store, for people, who alone need it: it may fail.
func (a *attempt) show(job, file string) {
	data, err := os.ReadFile(file)
	if err != nil || !a.showing.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer a.showing.Store(false)
		if root, err := a.Roots.Open(a.in.Document.Root); err == nil {
			_ = root.Put(path.Join(job, local.PreviewKey(a.in.Index)), func(w io.Writer) error {
				_, err := w.Write(data)
				return err
			})
		}
	}()
}

// send tells the server how far the task is. The SDK sends it now, or with the next heartbeat.
func (a *attempt) send() {
	a.mutex.Lock()
	beat := a.beat
	a.mutex.Unlock()
	activity.RecordHeartbeat(a.ctx, beat)
}

// keepAlive says that this worker lives, whatever the task says, until end is called.
func (a *attempt) keepAlive() (end func()) {
	every := throttle
	if within := activity.GetInfo(a.ctx).HeartbeatTimeout; within > 0 {
		every = min(every, within/4)
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				a.send()
			}
		}
	})
	return func() { close(stop); group.Wait() }
}

// errNotMe is of a task that this worker does not understand, or has no device for: another one may.
var errNotMe = errors.New("this worker cannot do it")

// options reads the task.
func (a *attempt) options() (*task.Options, error) {
	in := a.in
	if in.Version > flow.Version {
		return nil, fmt.Errorf("%w: it is older than the farm", errNotMe)
	}
	p, err := a.documents.Read(a.ctx, in.Document)
	if errors.Is(err, flow.ErrDocument) {
		return nil, fmt.Errorf("%w: %w", errNotMe, err)
	}
	if err != nil {
		return nil, err
	}
	if in.Index >= len(p.Plan.Tasks) || p.Plan.Tasks[in.Index].Name != in.Task || p.Plan.Hash(in.Index) != in.Hash {
		return nil, fmt.Errorf("%w: its version of vksplat makes other tasks of the document than the farm's", errNotMe)
	}
	a.task = &p.Plan.Tasks[in.Index]
	o := &task.Options{Job: p.Job, Plan: p.Plan, Index: in.Index, Fenced: true, Roots: a.Roots, Work: a.Work,
		CacheMax: a.CacheMax, Program: a.Program, Version: a.Version}
	if why := a.Lacks[a.task.Kind]; why != nil {
		return nil, fmt.Errorf("%w: %w", errNotMe, why)
	}
	if d := a.device; d != nil {
		if lacks := d.Lacks(a.task); lacks != "" {
			return nil, fmt.Errorf("%w: %s", errNotMe, lacks)
		}
		o.Device, o.Selected = d.UUID, *d
	}
	return o, nil
}

// Pauses after ends that are not the task's fault. Tests do not wait.
var (
	awayPause = 10 * time.Second // until the task is tried again
	restFirst = 5 * time.Second  // of this place, doubled by each such end in a row
	restMost  = 2 * time.Minute
	coolDown  = 30 * time.Second // of a device that was lost, for each time in a row
)

// end decides what follows the end of an attempt, as farm/local does: one that was stopped, or lost its device, or only
// waited for the store, does not count.
func (a *attempt) end(err error) error {
	a.mutex.Lock()
	tally := &a.beat.Tally
	a.mutex.Unlock()
	lost := a.judge(err)
	switch {
	case err == nil:
		a.say(a.in.Task + ": done")
		return nil
	case a.stopping.Err() != nil:
		return a.again(err, time.Millisecond)
	case a.ctx.Err() != nil:
		return a.takenBack()
	case lost:
		return a.again(err, a.task.Retry.Backoff)
	case errors.Is(err, errNotMe): // however many such workers there are
		a.rests()
		return a.again(err, awayPause)
	case task.ExitOf(err) == fault.ExitSetup:
		if tally.Refused++; tally.Refused >= mostRefused {
			return a.final(err)
		}
		if !errors.Is(err, task.ErrNoInput) { // that is the job's fault: tasks of others go on here
			a.rests()
		}
		return a.again(err, awayPause)
	case task.IsAway(err):
		a.rests()
		return a.again(err, awayPause)
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrForeign), task.IsFinal(task.ExitOf(err)):
		return a.final(err)
	}
	tally.Failed++
	retry := &spec.Retry{MaxAttempts: 1}
	if a.task != nil {
		retry = &a.task.Retry
	}
	if tally.Failed >= retry.MaxAttempts {
		return a.final(err)
	}
	a.rests()
	return a.again(err, retry.Pause(tally.Failed))
}

// takenBack ends an attempt that the server wants no more: the job was paused or canceled, or another attempt has the
// task. Or the server was started again just then, and does not know what it said: it takes this for a failure, after
// which another attempt follows.
func (a *attempt) takenBack() error {
	a.say(a.in.Task + ": stopped by the farm; saved")
	a.closes()
	if cause := context.Cause(a.ctx); errors.Is(cause, activity.ErrActivityPaused) ||
		errors.Is(cause, activity.ErrActivityReset) { // by Temporal's own means
		return a.again(cause, time.Millisecond)
	}
	return temporal.NewCanceledError(a.beat.Tally.Failed)
}

// Type of the errors of tasks.
const failureType = "task"

// again hands the task back: another attempt follows after a pause.
func (a *attempt) again(err error, pause time.Duration) error {
	a.say(fmt.Sprintf("%s: handed back, because: %v", a.in.Task, err))
	a.closes()
	return temporal.NewApplicationErrorWithOptions(bounded(err.Error()), failureType,
		temporal.ApplicationErrorOptions{NextRetryDelay: pause, Details: []any{bounded(fault.Hint(err))}})
}

// final gives the task up for good.
func (a *attempt) final(err error) error {
	a.say(fmt.Sprintf("%s: failed: %v", a.in.Task, err))
	a.closes()
	return temporal.NewApplicationErrorWithOptions(bounded(err.Error()), failureType,
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{bounded(fault.Hint(err))}})
}

// closes tells the server what the next attempt has to know.
func (a *attempt) closes() {
	a.mutex.Lock()
	a.beat.Tally.Open = false
	a.mutex.Unlock()
	a.send()
}

// bounded cuts a text that is too long for an event of a workflow.
func bounded(s string) string {
	const most = 4000
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// judge says whether the task has lost its device, and has that rest.
func (p *place) judge(err error) (lost bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err == nil {
		p.failures = 0
	}
	if p.device == nil || !errors.Is(err, fault.ErrDeviceLost) {
		if err == nil {
			p.lost = 0
		}
		return false
	}
	p.lost++
	pause := min(time.Duration(p.lost)*coolDown, 20*coolDown)
	p.slots.rest(pause)
	p.say(fmt.Sprintf("%s was lost; it rests for %v", p.device.Name, pause))
	return true
}

// rests has the place take nothing for a while, after an end that may be this machine's fault: others take the task.
func (p *place) rests() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	pause := min(restFirst<<min(p.failures, 10), restMost)
	p.failures++
	p.slots.rest(cmp.Or(pause, restFirst))
}
