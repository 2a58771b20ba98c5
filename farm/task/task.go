package task

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
)

// Options say which task runs, and where.
type Options struct {
	Job   *spec.Job
	Plan  *spec.Plan
	Index int // of the task
	// by an engine that gives no number twice: what a higher one has in the store is not this one's; 0: the next one of
	// which there is no log
	Attempt int
	// of an engine that may begin an attempt while an earlier one lives: what a higher number has is not this one's,
	// though the number is the next one of which there is no log
	Fenced  bool
	Roots   store.Roots
	Gather  bool // what the task can do without is not waited for: the tasks that make it have failed
	InPlace bool // inputs in a folder are read there, not copied: the folder is this machine's own

	Work     string // folder for what is in the making, on the local disk
	CacheMax int64  // bytes of inputs that stay there, 0: all

	Program  string // this program's file
	Version  string // and version
	Device   string // for the child's --device, "" for its own choice
	Selected Device // what that is, where it is known

	Report func(Progress) // called from one goroutine at a time; nil: nobody listens
}

// Device is what a task runs on, as vksplat devices --json lists it.
type Device struct {
	Name, UUID, PCI, Driver string
	MemoryBytes             int64 `json:"memory_bytes"`
}

// Is says whether a job's pin means the device: its name, or its UUID or PCI address in any of the ways in which they
// are written.
func (d Device) Is(pin string) bool {
	plain := func(s string) string {
		return strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s), "gpu-"), "-", "")
	}
	short := strings.TrimPrefix(strings.ToLower(pin), "0000") // of a domain of eight digits, as NVIDIA's tools print it
	return pin == d.Name || d.UUID != "" && plain(pin) == plain(d.UUID) || d.PCI != "" &&
		(strings.EqualFold(pin, d.PCI) || short == d.PCI)
}

// Lacks says why a task may not run on the device, "" where it may.
func (d *Device) Lacks(t *spec.Task) string {
	switch {
	case t.Pin.Device != "" && !d.Is(t.Pin.Device):
		return fmt.Sprintf("it is pinned to the device %s, this is %s", t.Pin.Device, d.Name)
	case t.Pin.Driver != "" && t.Pin.Driver != d.Driver:
		return fmt.Sprintf("it is pinned to the driver %s, this is %s", t.Pin.Driver, d.Driver)
	case d.MemoryBytes > 0 && d.MemoryBytes < int64(t.Limits.VRAMMinMB)<<20:
		return fmt.Sprintf("it needs %d MB of device memory, %s has %d", t.Limits.VRAMMinMB, d.Name, d.MemoryBytes>>20)
	}
	return ""
}

// Progress is how far a task is.
type Progress struct {
	Task    string `json:"task"`
	Step    int    `json:"step"`
	Of      int    `json:"of,omitempty"` // 0: not known
	Message string `json:"message,omitempty"`

	Rate float64 `json:"rate,omitempty"` // steps a second; 0: not known
	Unit string  `json:"unit,omitempty"` // what steps are: "steps" of training, or "pictures"; "" of others
	Free bool    `json:"free,omitempty"` // the task uses its device no more: what is left goes to the store
	Away bool    `json:"away,omitempty"` // it does nothing but wait for a store that does not answer
	// a file on this machine with a new small picture of what the task makes, JPEG; in one line alone
	Preview string `json:"preview,omitempty"`
}

// Reasons to end a run from outside, as causes of its context.
var (
	// ErrStopped hands the task back: the child saves, the checkpoint goes up, another attempt goes on.
	ErrStopped = ended("stopped; the next attempt continues from its checkpoint", "run it again, here or elsewhere")
	// ErrCanceled gives the task up, after the same.
	ErrCanceled = ended("canceled", "its checkpoint is kept: run it again to continue")
)

// Errors of a child that does not end by itself.
var (
	errStalled = ended("no progress within stall_timeout",
		"look at the task's log; where the device hung, it may have to be reset; or raise stall_timeout in the job's "+
			"limits")
	errTimeout = ended("not done within task_timeout",
		"run it again to continue, or raise task_timeout in the job's limits")
)

// ended is an error of a run that did not come to its end.
func ended(why, hint string) error {
	return &fault.Error{Op: "run task", Err: errors.New(why), Hint: hint, Kind: fault.ErrTryAgain}
}

// runner is one run.
type runner struct {
	*Options
	task       *spec.Task
	fenced     bool // attempts with higher numbers are later ones
	inputs     store.Root
	outputs    store.Root
	cache      *store.Cache
	key        string     // of the task below outputs
	hash       string     // of what it does
	generation int        // of its results, when this began
	since      int        // the first generation of which it goes on from what was saved
	absent     []int      // tasks that it reads and does without
	given      string     // the SHA-256 of the results of other tasks that it reads, "" without such
	stored     int        // step that the store has of what this goes on with, 0 where that is newer
	from       int        // step that this goes on from, 0 for the beginning
	dir        string     // of this task below Work
	out        string     // in it: what becomes the results
	state      store.Made // who has worked on what is in out: devices, notes, what it is made from
	release    []func()
	staged     []place // local copies of inputs
	log        *os.File
	logs       sync.WaitGroup // uploads of it while a child runs
	shown      preview        // of the goroutine that watches the child
	table      string         // of scores, that the last child reported

	mutex   sync.Mutex // guards what follows
	now     Progress
	waiting string // for the store, and why; "": it answers
	runs    bool   // a child does
	doing   string // stage of the child's work, "" where it names none
	speed   speed
	moved   time.Time // when there was progress last
	said    time.Time // when that was reported last
}

// KeyOf is where the results of a task are, below the root of outputs.
func KeyOf(j *spec.Job, t *spec.Task) string { return path.Join(j.Name, t.Name) }

// Run runs the task and returns the manifest of its results. Where these are there already, nothing is done.
func Run(ctx context.Context, o Options) (m *store.Manifest, err error) {
	if o.Index < 0 || o.Index >= len(o.Plan.Tasks) {
		return nil, &fault.Error{Op: "run task",
			Err:  fmt.Errorf("there is no task %d, the job has %d", o.Index, len(o.Plan.Tasks)),
			Hint: "tasks count from 0", Kind: fault.ErrUsage}
	}
	r := &runner{Options: &o, task: &o.Plan.Tasks[o.Index], fenced: o.Attempt > 0 || o.Fenced, moved: time.Now()}
	r.key, r.hash = KeyOf(o.Job, r.task), o.Plan.Hash(o.Index)
	r.now.Task, r.now.Unit = r.task.Name, r.unit()
	if r.inputs, err = o.Roots.Open(o.Job.Store.Inputs); err != nil {
		return nil, err
	}
	if r.outputs, err = o.Roots.Open(o.Job.Store.Outputs); err != nil {
		return nil, err
	}
	r.inputs, r.outputs = r.attend(ctx, r.inputs), r.attend(ctx, r.outputs)
	r.say("looking for results", true)
	// first: what is wanted anew from now on is not what this makes
	if r.generation, err = store.Generation(r.outputs, r.key); err != nil {
		return nil, store.Explain("read results", r.key, r.reason(ctx, err))
	}
	if r.since, err = store.Since(r.outputs, r.key, r.generation); err != nil {
		return nil, store.Explain("read results", r.key, r.reason(ctx, err))
	}
	if m, err = store.Result(ctx, r.outputs, r.key); err != nil {
		return nil, store.Explain("read results", r.key, r.reason(ctx, err))
	}
	if m != nil {
		if err := m.Of(r.key, r.hash); err != nil {
			return nil, err
		}
		if more, err := r.outgrown(m); err != nil {
			return nil, store.Explain("read results", r.key, r.reason(ctx, err))
		} else if more {
			return Run(ctx, o)
		}
		r.say("done before", true)
		r.tidy()
		return m, nil
	}
	if err := r.outputs.Ready(r.key); err != nil {
		return nil, store.Explain("open store", r.key, r.reason(ctx, err))
	}
	if err := r.fits(); err != nil {
		return nil, err
	}
	if err := r.number(); err != nil {
		return nil, store.Explain("begin log", r.key, r.reason(ctx, err))
	}
	unlock, err := r.openWork(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return r.run(ctx)
}

// fits refuses a device or disk that the task may not run on.
func (r *runner) fits() error {
	t := r.task
	if lacks := r.Selected.Lacks(t); lacks != "" && t.Kind.NeedsDevice {
		return &fault.Error{Op: "run task", Path: t.Name, Err: errors.New(lacks),
			Hint: "run it where that is so, or change the job", Kind: store.ErrSetup}
	}
	if free, known := atomicfile.FreeSpace(r.Work); known && free < int64(t.Limits.DiskMinGB)<<30 {
		return &fault.Error{Op: "run task", Path: r.Work, Err: fmt.Errorf("it needs %d GB of room, there are %d: %w",
			t.Limits.DiskMinGB, free>>30, syscall.ENOSPC), Hint: "make room there, or choose another folder with " +
			fault.Setting("work"), Kind: fault.ErrTryAgain}
	}
	return nil
}

// run does the work in the folder that is open, and clears it away when it is done.
func (r *runner) run(ctx context.Context) (*store.Manifest, error) {
	m, err := r.perform(ctx)
	for _, release := range r.release {
		release()
	}
	err = errors.Join(err, r.log.Close())
	r.logs.Wait() // older ones
	r.uploadLog(r.outputs)
	if err == nil {
		// What is left of these harms nobody: tidy or gc removes it.
		_ = store.Forget(r.outputs, r.key, r.until())
		_ = os.RemoveAll(r.dir)
	}
	return m, err
}

// tidy removes what an attempt left that was killed between its commit and the end, unless a process works there.
func (r *runner) tidy() {
	if last, err := store.LastCheckpoint(r.outputs, r.key); err == nil && last > 0 {
		_ = store.Forget(r.outputs, r.key, r.until()) // gc does, too
	}
	dir, lock := workFolder(r.Work, r.Job, r.task, r.hash)
	if _, err := os.Stat(dir); err != nil {
		return
	}
	if unlock, err := store.TryLock(lock); err == nil {
		_ = os.RemoveAll(dir) // the next one may
		unlock()
	}
}

// perform resumes, works and commits. Results that an earlier attempt on this machine finished, and could not commit,
// are not made again.
func (r *runner) perform(ctx context.Context) (m *store.Manifest, err error) {
	if r.given, err = r.reads(ctx); err != nil {
		return nil, err
	}
	f := r.finishedBefore()
	if f == nil {
		if f, err = r.finish(ctx); err != nil {
			return nil, err
		}
	}
	r.leavesDevice()
	dir, err := os.OpenRoot(r.out)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // its files are closed
	r.say("committing results", true)
	if ctx.Err() == nil {
		r.outputs = r.attend(ctx, r.outputs) // the patience of its checkpoints is used up, where it was away
	}
	m, own, err := store.Commit(context.WithoutCancel(ctx), r.outputs, r.key, dir, f.names(), f.Made)
	if err != nil {
		err = store.Explain("commit results", r.key, err)
		if ctx.Err() != nil && ExitOf(err) == fault.ExitTryAgain {
			err = errors.Join(context.Cause(ctx), err)
		}
		return nil, err
	}
	if own {
		r.say("done", true)
	} else {
		r.say("another attempt finished first; its results are kept", true)
	}
	return m, nil
}

// made says who makes what.
func (r *runner) made(step int) store.Made {
	return store.Made{Job: r.Job.Name, JobHash: r.Job.Hash(), Task: r.task.Name, Hash: r.hash, Index: r.task.Index,
		Kind: r.task.Kind.Name, Attempt: r.Attempt, Inputs: r.given, Generation: r.generation, Since: r.since,
		Step:    step,
		Program: r.Version, Device: r.state.Device, UUID: r.Selected.UUID, Driver: r.state.Driver, Mixed: r.state.Mixed,
		Notes: r.state.Notes, Missing: r.missing()}
}

// missing names what the task does without.
func (r *runner) missing() (names []string) {
	for _, k := range r.absent {
		names = append(names, r.Plan.Tasks[k].Name)
	}
	return names
}

// outgrown says whether there is more to make results of than when they were made: they are out of date then. Without
// Gather that is all that they lack, or there would be none at all meanwhile.
func (r *runner) outgrown(m *store.Manifest) (bool, error) {
	more := 0
	for _, name := range m.Missing {
		_, err := store.ReadManifest(r.outputs, store.OutOf(path.Join(r.Job.Name, name)))
		switch {
		case err == nil:
			more++
		case !errors.Is(err, fs.ErrNotExist):
			return false, err
		}
	}
	if more == 0 || more < len(m.Missing) && !r.Gather {
		return false, nil
	}
	return true, store.Outdate(r.outputs, r.key, r.generation+1)
}

// reason is why ctx ended, where err only says that it did.
func (r *runner) reason(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// say reports a phase, or with always false a step that may be left out: one a second is enough.
func (r *runner) say(message string, always bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.now.Message = message
	r.report(always)
}

// report tells who listens. The caller holds mutex.
func (r *runner) report(always bool) {
	if r.Report == nil || !always && time.Since(r.said) < time.Second {
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
	r.Report(p)
	r.now.Preview = ""
}

// step takes in how far the child is. Always says whether the line that reports it may not be left out.
func (r *runner) step(step, of int, always bool) {
	r.mutex.Lock()
	r.now.Step, r.now.Of, r.moved = step, of, time.Now()
	r.now.Rate = r.speed.at(step, r.moved, r.now.Rate)
	doing := cmp.Or(r.doing, r.task.Kind.Name)
	r.mutex.Unlock()
	r.say(doing, always)
}

// alive takes in a sign of life of the child.
func (r *runner) alive() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.moved = time.Now()
}

func (r *runner) quiet() time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return time.Since(r.moved)
}

// until is the highest attempt whose checkpoints this one may remove. Without an engine that counts nobody says which
// is the latest.
func (r *runner) until() int {
	if r.fenced {
		return r.Attempt
	}
	return store.AllAttempts
}

// logFolder holds beside a task's results what each attempt said.
const logFolder = "log"

// logKey is where the log of an attempt goes.
func (r *runner) logKey() string {
	return path.Join(r.key, logFolder, fmt.Sprintf("a%05d.log", r.Attempt))
}

// lastAttempt is the highest attempt at a task that has left a log or a checkpoint in the store.
func lastAttempt(outputs store.Root, key string) (last int, err error) {
	list, err := outputs.List(path.Join(key, logFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, e := range list {
		if n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path.Base(e.Key), "a"), ".log")); err == nil {
			last = max(last, n)
		}
	}
	saved, err := store.LastCheckpoint(outputs, key)
	return max(last, saved), err
}

// number gives an attempt that whoever started it has not counted the number behind the last that nobody has: others
// may begin at the same moment. Its log begins here: it counts even if it is killed, and its number, by which its
// checkpoints go, is given to no other.
func (r *runner) number() error {
	if r.Attempt > 0 {
		// a store that cannot be written to is told of by what counts
		_ = r.outputs.Put(r.logKey(), func(io.Writer) error { return nil })
		return nil
	}
	last, err := lastAttempt(r.outputs, r.key)
	if err != nil {
		return err
	}
	for r.Attempt = last + 1; ; r.Attempt++ {
		if err := r.outputs.Claim(r.logKey()); !errors.Is(err, store.ErrExists) || r.Attempt == last+mostAtOnce {
			return err
		}
	}
}

// mostAtOnce is more attempts than begin at one moment.
const mostAtOnce = 1000

// uploadLog puts the child's words to the results. Without them the task has its results all the same.
func (r *runner) uploadLog(root store.Root) {
	_ = root.Put(r.logKey(), func(w io.Writer) error {
		f, err := os.Open(r.log.Name())
		if err != nil {
			return err
		}
		defer f.Close() // only read
		_, err = io.Copy(w, f)
		return err
	})
}

// workFolder is the folder below work of a task with a hash, and the lock of whoever works in it. Two tasks may be
// alike, in one job or in those of two people: each has its own, or the second would wait for the first.
func workFolder(work string, j *spec.Job, t *spec.Task, hash string) (dir, lock string) {
	own := sha256.Sum256([]byte(strings.Join([]string{j.Store.Inputs, j.Store.Outputs, KeyOf(j, t), hash}, "\x00")))
	name := hex.EncodeToString(own[:12])
	return filepath.Join(work, name), filepath.Join(work, "locks", name)
}

// cacheDir is the folder of inputs that all tasks below Work share.
func (r *runner) cacheDir() string { return filepath.Join(r.Work, "cache") }
