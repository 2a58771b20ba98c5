package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"vksplat/farm/flow"
	"vksplat/farm/local"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/farm/wire"
	"vksplat/internal/fault"
)

// Beat is what a heartbeat tells: how far the task is, and what the next attempt has to know of this one.
type Beat struct {
	task.Progress
	Host   string `json:"host"`
	Device string `json:"device,omitempty"`
	Since  string `json:"since,omitempty"` // as the server said last, see wire.Conn
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
	given *wire.Given
	ctx   context.Context // ends when the server wants it no more; its cause says why
	take  context.CancelCauseFunc
	in    flow.TaskInput
	task  *spec.Task

	vanished bool // the attempt before said nothing in the end

	showing atomic.Bool // a picture is on its way to the store
	mutex   sync.Mutex
	beat    Beat
}

// perform does a task that a queue gave, and tells the server how it ended. It calls leave once the task needs its
// place no more.
func (p *place) perform(given *wire.Given, leave func()) {
	a := &attempt{place: p, given: given}
	a.ctx, a.take = context.WithCancelCause(context.Background())
	defer a.take(nil)
	unread := given.Input.Read(&a.in)
	a.beat = Beat{Host: p.host, Tally: Tally{Failed: a.in.Failed}}
	if p.device != nil {
		a.beat.Device = p.device.Name
	}
	a.beat.Task, a.beat.Message = a.in.Task, "begins"
	a.recall()
	end := a.beats()
	err := unread
	if err != nil || given.Type == nil || given.Type.Name != flow.TaskType {
		err = fmt.Errorf("%w: it is of another program", errNotMe)
	} else {
		err = a.run(leave)
	}
	end()
	a.report(a.end(err))
}

// errVanished is of a task whose attempts ended without a word too often.
var errVanished = errors.New("attempts ended without a report: their workers were killed, or lost contact with the " +
	"farm")

// run does the task.
func (a *attempt) run(leave func()) (err error) {
	defer func() {
		if p := recover(); p != nil { // other tasks of this machine go on
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	o, err := a.options()
	if err != nil {
		return err
	}
	if n := a.beat.Tally.Failed; a.vanished && n >= a.task.Retry.MaxAttempts {
		return &fault.Error{Op: "run task", Path: a.in.Task, Err: fmt.Errorf("%d %w", n, errVanished),
			Hint: "look at the task's log, and at the machines it ran on"}
	}
	release, ok := a.holds(a.ctx, a.in.Document.Root+"/"+a.in.Document.Key+"/"+a.in.Task)
	if !ok {
		return task.ErrStopped
	}
	defer release()
	o.Report = func(progress task.Progress) {
		if progress.Free && a.device != nil {
			leave()
		}
		if progress.Preview != "" {
			a.show(o.Job.Name, progress.Preview)
		}
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.beat.Progress = progress
		a.beat.Preview = "" // a file of this machine
	}
	a.say(a.in.Task + ": begins")
	inner, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	defer context.AfterFunc(a.ctx, func() { stop(task.ErrStopped) })()
	defer context.AfterFunc(a.stopping, func() { stop(task.ErrStopped) })()
	_, err = a.do(inner, *o)
	return err
}

func (w *worker) say(text string) {
	if w.Note != nil {
		w.Note(text)
	}
}

// recall takes in what earlier attempts said. One that said nothing in the end counts, unless it came further than
// those before, or the server was away: its worker was killed, and the task need not be to blame.
func (a *attempt) recall() {
	var before Beat
	if a.given.Beat.Read(&before) != nil {
		a.beat.Tally.Open = true
		return
	}
	t := before.Tally
	if t.Open && before.Since == a.Conn.Since() {
		if before.Step > t.Best {
			t.Best = before.Step
		} else {
			t.Failed++
		}
		a.vanished = true
	}
	t.Open = true
	a.beat.Tally = t
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

// errNotMe is of a task that this worker does not understand, or has no device for: another one may.
var errNotMe = errors.New("this worker cannot run it")

// options reads the task.
func (a *attempt) options() (*task.Options, error) {
	in := &a.in
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
		return nil, fmt.Errorf("%w: its vksplat plans other tasks from the document than the farm's does", errNotMe)
	}
	a.task = &p.Plan.Tasks[in.Index]
	o := &task.Options{Job: p.Job, Plan: p.Plan, Index: in.Index, Fenced: true, Roots: a.Roots, Work: a.Work,
		CacheMax: a.CacheMax, Program: a.Program, Version: a.Version, Gather: in.Gather}
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
func (a *attempt) end(err error) wire.Request {
	tally := &a.beat.Tally
	lost := a.judge(err)
	switch {
	case err == nil:
		a.say(a.in.Task + ": done")
		return &wire.Completed{Token: a.given.Token}
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
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrForeign), errors.Is(err, errVanished),
		task.IsFinal(task.ExitOf(err)):
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
// task.
func (a *attempt) takenBack() wire.Request {
	a.say(a.in.Task + ": stopped by the farm; saved")
	switch why := context.Cause(a.ctx); {
	case errors.Is(why, errCanceled): // its next activity continues the failed attempt
		return &wire.Stopped{Token: a.given.Token, Details: wire.PayloadsOf(a.beat.Tally.Failed)}
	case errors.Is(why, errPaused): // by Temporal's own means
		return a.failed(why, time.Millisecond, false)
	}
	return nil // it listens no more
}

// again hands the task back: another attempt follows after a pause.
func (a *attempt) again(err error, pause time.Duration) wire.Request {
	a.say(fmt.Sprintf("%s: handed back, because: %v", a.in.Task, err))
	return a.failed(err, pause, false)
}

// final gives the task up for good.
func (a *attempt) final(err error) wire.Request {
	a.say(fmt.Sprintf("%s: failed: %v", a.in.Task, err))
	return a.failed(err, 0, true)
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
	p.rest(pause)
	p.say(fmt.Sprintf("%s was lost; pausing before it is used again for %v", p.device.Name, pause))
	return true
}
