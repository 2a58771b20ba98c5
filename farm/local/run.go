package local

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
)

// runner is a job that runs. All of it but the news belongs to the goroutine of loop, which never waits for the store:
// tasks that go on would wait with it.
type runner struct {
	Options
	do      func(context.Context, task.Options) (*store.Manifest, error)
	outputs store.Root

	status     Status
	order      []int // tasks that may yet run, those first that go first
	missing    []int // by task, how many that it needs are not done
	dependants [][]int
	partial    [][]string // by task, what its results lack, nil where they are whole
	inspected  bool
	away       bool // the store could not be reached when an attempt failed last

	devices []*device
	others  int // tasks without a device that run
	running map[int]*attempt
	due     map[int]time.Time // of tasks that are tried again
	events  chan event
	halted  bool // nothing begins any more: a task failed, and KeepGoing is false
	shown   shown
	news    news
}

// device is one that tasks run on.
type device struct {
	task.Device
	lock   string // file
	user   int    // the task of this run that uses it, -1 for none
	unlock func()
	tasks  int // of this run that use it, or did and have not ended: their results go to the store
	lost   int // times in a row
	rests  time.Time
	taken  bool // by another run, when last checked
}

// attempt is a task that is running, or whose permanent failure is being recorded in the store.
type attempt struct {
	device *device // nil: none
	began  time.Time
}

// event is the result of a task's goroutine.
type event struct {
	index    int
	recorded bool // the store has recorded the failure, else the attempt has ended
	err      error
	away     error      // why the store cannot be reached, nil where it can
	outputs  store.Root // opened again where it was looked at; nil: it was not
}

// news is how far tasks are. They leave it here and go on, however busy the loop is.
type news struct {
	mutex  sync.Mutex
	latest map[int]task.Progress // by task
	there  chan struct{}         // holds one while there is any
}

// leave puts down how far a task is, in place of what it said before. A picture is named only once: it stays.
func (n *news) leave(i int, p task.Progress) {
	n.mutex.Lock()
	if p.Preview == "" {
		p.Preview = n.latest[i].Preview
	}
	n.latest[i] = p
	n.mutex.Unlock()
	select {
	case n.there <- struct{}{}:
	default:
	}
}

// collect gives what was left since the last call.
func (n *news) collect() map[int]task.Progress {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	latest := n.latest
	n.latest = map[int]task.Progress{}
	return latest
}

const (
	lookEvery = 100 * time.Millisecond // between looks at what time alone changes
	lookTaken = time.Second            // at devices that another run uses

	mostLost  = 3 // times in a row, then a device is not used any more
	mostTasks = 3 // of a device: one that uses it, others whose results go to the store
)

// Pauses. Tests do not wait.
var (
	coolDown  = 30 * time.Second // how long a device rests that was lost, for each time in a row
	awayPause = 10 * time.Second // after an attempt that only waited for the store
)

// loop begins what can begin, takes in what tasks say, and ends when nothing more can be done. What is left of the
// store goes on where this is killed anywhere.
func (r *runner) loop(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		more := ctx.Err() == nil && !r.halted && r.begin(ctx)
		r.publish(len(r.running) == 0 && !more)
		if len(r.running) == 0 && !more {
			return
		}
		select {
		case <-r.news.there:
			r.progress()
		case e := <-r.events:
			r.progress() // which came before
			r.take(ctx, e)
		case <-tick.C:
		}
	}
}

// begin starts the tasks for which there is a place, and says whether any task is left that may run.
func (r *runner) begin(ctx context.Context) (more bool) {
	r.order = slices.DeleteFunc(r.order, func(i int) bool { return r.status.Tasks[i].State.over() })
	now := time.Now()
	for _, i := range r.order {
		state := r.status.Tasks[i].State
		if state != Ready && state != Retrying || !r.canRun(i) {
			continue
		}
		more = true
		if state == Retrying && now.Before(r.due[i]) {
			continue
		}
		t := &r.Plan.Tasks[i]
		if why := r.Lacks[t.Kind]; why != nil {
			if r.cannot(i, why); r.halted {
				return false
			}
			continue
		}
		if !t.Kind.NeedsDevice {
			if r.others < r.Others {
				r.others++
				r.start(ctx, i, nil)
			}
			continue
		}
		for _, d := range r.devices {
			if d.Lacks(t) == "" && d.take(r, i, now) {
				r.start(ctx, i, d)
				break
			}
		}
	}
	return more
}

// canRun says whether there is a place for a task, now or later: not where its devices were lost too often.
func (r *runner) canRun(i int) bool {
	t := &r.Plan.Tasks[i]
	if !t.Kind.NeedsDevice {
		return r.Others > 0
	}
	return slices.ContainsFunc(r.devices, func(d *device) bool { return d.lost < mostLost && d.Lacks(t) == "" })
}

// LockFile is that of a device's lock: runs and workers of one machine take turns.
func LockFile(folder string, d *task.Device) string {
	return filepath.Join(folder, "vksplat-gpu-"+spec.Escape(d.UUID)+".lock")
}

// take takes a device for a task, unless it is in use, here or by another run, or rests.
func (d *device) take(r *runner, i int, now time.Time) bool {
	if d.user >= 0 || d.tasks >= mostTasks || d.lost >= mostLost || now.Before(d.rests) {
		return false
	}
	unlock, err := lockfile.Try(d.lock, lockfile.Exclusive)
	switch {
	case err != nil && !errors.Is(err, lockfile.ErrLocked): // the command has checked the folder: go on without
		unlock = func() {}
	case err != nil:
		if !d.taken {
			r.Note("waiting for " + d.Name + ", which another run on this machine uses")
		}
		d.taken, d.rests = true, now.Add(lookTaken)
		return false
	}
	d.user, d.unlock, d.taken = i, unlock, false
	d.tasks++
	return true
}

// release gives a device to others, once a task uses it no more. Another one may have it already.
func (d *device) release(i int) {
	if d.user == i {
		d.unlock()
		d.user = -1
	}
}

// start runs a task in a goroutine of its own, which says how that goes.
func (r *runner) start(ctx context.Context, i int, d *device) {
	r.running[i] = &attempt{device: d, began: time.Now()}
	t := &r.status.Tasks[i]
	t.State, t.Device, t.Step, t.Of, t.Rate, t.Message, t.Error, t.Hint = Running, "", 0, 0, 0, "", "", ""
	t.Attempts++
	o := task.Options{Job: r.Job, Plan: r.Plan, Index: i, Roots: r.Roots, InPlace: true, Work: r.Work,
		CacheMax: r.CacheMax, Program: r.Program, Version: r.Version, Gather: len(r.lacking(i)) > 0}
	if d != nil {
		o.Device, o.Selected, t.Device = d.UUID, d.Device, d.Name
	}
	o.Report = func(p task.Progress) { r.news.leave(i, p) }
	r.tell(i)
	away := r.away
	go func() {
		inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
		defer stop(nil)
		defer context.AfterFunc(ctx, func() { stop(task.ErrStopped) })()
		_, err := r.do(inner, o)
		e := event{index: i, err: err}
		if (err != nil && !task.IsAway(err) || away) && ctx.Err() == nil {
			e.outputs, e.away = reach(ctx, &r.Options, err)
		}
		r.events <- e
	}()
}

// reach says whether the store can be read and written to. This run found that it can: what has changed, such as
// permissions or a share, may change again, and then it needs a root of what is there now.
func reach(ctx context.Context, r *Options, failed error) (store.Root, error) {
	if errors.Is(failed, task.ErrNotMounted) {
		return nil, failed
	}
	if _, err := r.Roots.Open(r.Job.Store.Inputs); err != nil {
		return nil, err
	}
	root, err := r.Roots.Open(r.Job.Store.Outputs)
	if err != nil {
		return nil, err
	}
	root = root.Attend(ctx, func(error) {})
	probe := path.Join(r.Job.Name, Folder, "probe")
	if err := root.Put(probe, func(io.Writer) error { return nil }); err != nil {
		return nil, store.Explain("write to store", probe, err)
	}
	_ = root.Delete(probe) // a leftover is harmless
	return root, nil
}

// progress takes in how far tasks are.
func (r *runner) progress() {
	for i, p := range r.news.collect() {
		a := r.running[i]
		if a == nil {
			continue // a last word of what has ended
		}
		t := &r.status.Tasks[i]
		t.Step, t.Of, t.Rate, t.Unit, t.Message = p.Step, p.Of, p.Rate, p.Unit, p.Message
		if p.Free && a.device != nil {
			a.device.release(i)
		}
		if picture, err := os.ReadFile(p.Preview); err == nil { // else there is none, or the task has gone on
			r.shown.previews[i], t.Preview = picture, true
		}
		r.tell(i)
	}
}

// take takes in the end of an attempt, or that the store knows of a failure.
func (r *runner) take(ctx context.Context, e event) {
	t, a := &r.status.Tasks[e.index], r.running[e.index]
	delete(r.running, e.index)
	switch {
	case e.recorded:
		r.failed(e.index, e.err)
	case a.device != nil:
		a.device.release(e.index)
		a.device.tasks--
	default:
		r.others--
	}
	if !e.recorded {
		t.Seconds += time.Since(a.began).Seconds()
		t.Rate = 0
		switch {
		case e.outputs != nil:
			r.outputs, r.away = e.outputs, false
		case e.away != nil && e.err != nil:
			e.err, r.away = e.away, true
		}
		r.ended(ctx, e.index, e.err, e.away != nil, a.device != nil && a.device.judge(r, e.err))
	}
	r.tell(e.index)
}

// judge says whether a task has lost its device.
func (d *device) judge(r *runner, err error) (lost bool) {
	if !errors.Is(err, fault.ErrDeviceLost) {
		d.lost = 0
		return false
	}
	d.lost++
	d.rests = time.Now().Add(time.Duration(d.lost) * coolDown)
	if d.lost == mostLost {
		r.Note(d.Name + " is no longer used: it was lost several times in a row")
	} else {
		r.Note(d.Name + " was lost; pausing before it is used again")
	}
	return true
}

// ended decides what follows the end of an attempt. One that lost its device, or only waited for the store, does not
// count.
func (r *runner) ended(ctx context.Context, i int, err error, away, lost bool) {
	t, retry := &r.status.Tasks[i], &r.Plan.Tasks[i].Retry
	switch {
	case err == nil:
		t.Step = max(t.Step, t.Of)
		r.done(i)
		return
	case ctx.Err() != nil:
		t.State, t.Message = Ready, "stopped"
		return
	}
	t.Error, t.Hint, t.Message = err.Error(), fault.Hint(err), ""
	if errors.Is(err, store.ErrOtherTask) {
		t.Hint = fault.Command("farm run --redo") + " replaces them; to keep them, " + t.Hint
	}
	switch {
	case lost:
		t.Attempts--
		r.again(i, retry.Backoff)
	case away, task.IsAway(err):
		t.Attempts--
		r.again(i, awayPause)
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrForeign): // not the task's fault
		r.cannot(i, err)
	case task.IsFinal(task.ExitOf(err)) || t.Attempts >= retry.MaxAttempts:
		r.fail(i)
	default:
		r.again(i, retry.Pause(t.Attempts))
	}
}

// done notes that a task is done.
func (r *runner) done(i int) {
	t := &r.status.Tasks[i]
	t.State, t.Message = Done, without(r.lacking(i))
	for _, next := range r.dependants[i] {
		r.missing[next]--
		r.awake(next)
	}
}

// without says what results lack.
func without(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "without " + strings.Join(names, ", ")
}

// cannot notes that nothing here can do a task. The store does not remember that: the next run looks again.
func (r *runner) cannot(i int, why error) {
	t := &r.status.Tasks[i]
	t.Error, t.Hint, t.forgotten = why.Error(), fault.Hint(why), true
	r.halt()
	r.failed(i, nil)
	r.tell(i)
}

// fail tells the store that a task has failed for good. It counts as running until the store has answered.
func (r *runner) fail(i int) {
	t := &r.status.Tasks[i]
	t.Message = "failed; recording that in the store"
	r.running[i] = &attempt{}
	r.halt()
	note := failure{r.Plan.Hash(i), t.Attempts, t.Error, t.Hint, time.Now()}
	file, root := path.Join(r.key(i), failedName), r.outputs
	go func() { r.events <- event{index: i, recorded: true, err: putJSON(root, file, &note)} }()
}

// failed notes that a task has failed for good, and decides what the job does without it. Unknown says why the store
// does not know.
func (r *runner) failed(i int, unknown error) {
	t := &r.status.Tasks[i]
	t.State, t.Message = Failed, ""
	if unknown != nil {
		t.forgotten = true
		r.Note("the store does not know that " + t.Task + " failed, the next run tries it again: " +
			unknown.Error())
	}
	r.lose(i)
}

// halt begins nothing more after a failure, unless the others are to go on.
func (r *runner) halt() {
	if !r.KeepGoing && !r.halted {
		r.halted = true
		r.Note("no more tasks start: one has failed, and keep_going is false")
	}
}

// again has a task tried again.
func (r *runner) again(i int, pause time.Duration) {
	t := &r.status.Tasks[i]
	t.State, t.Message = Retrying, "tried again in "+pause.String()
	r.due[i] = time.Now().Add(pause)
}

func (r *runner) tell(i int) {
	r.shown.dirty = true
	if r.Report != nil {
		r.Report(&r.status, i)
	}
}
