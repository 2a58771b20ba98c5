package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
)

// Options say which task runs, and where.
type Options struct {
	Job     *spec.Job
	Plan    *spec.Plan
	Index   int // of the task
	Attempt int // unique number from an engine; 0: the next one without a log
	// checkpoints of higher attempts belong to others, as with an Attempt from an engine
	Fenced  bool
	Roots   store.Roots
	Gather  bool // do without optional inputs: their tasks have failed
	InPlace bool // read inputs in a local folder without copying them

	Work     string // folder of unfinished work, on the local disk
	CacheMax int64  // bytes of inputs kept there, 0: all

	Program  string // this program's file
	Version  string // and version
	Device   string // for the child's --device, "" for its default
	Selected Device // that device, if known

	Report func(Progress) // called from one goroutine at a time; may be nil
}

// Device is what a task runs on, as vksplat devices --json lists it.
type Device struct {
	Name, UUID, PCI, Driver string
	MemoryBytes             int64 `json:"memory_bytes"`
}

// Is reports whether a job's pin means the device: by its name, or by its UUID or PCI address in any notation.
func (d Device) Is(pin string) bool {
	plain := func(s string) string {
		return strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s), "gpu-"), "-", "")
	}
	short := strings.TrimPrefix(strings.ToLower(pin), "0000") // NVIDIA's tools print a domain of eight digits
	return pin == d.Name || d.UUID != "" && plain(pin) == plain(d.UUID) || d.PCI != "" &&
		(strings.EqualFold(pin, d.PCI) || short == d.PCI)
}

// Lacks says why a task cannot run on the device, "" if it can.
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
	Of      int    `json:"of,omitempty"` // 0: unknown
	Message string `json:"message,omitempty"`

	Rate float64 `json:"rate,omitempty"` // steps a second; 0: unknown
	Unit string  `json:"unit,omitempty"` // "steps" of training, "pictures", or ""
	Free bool    `json:"free,omitempty"` // the task no longer uses its device
	Away bool    `json:"away,omitempty"` // it only waits for a store that does not respond
	// a local JPEG file with a new preview of the results; in one report only
	Preview string `json:"preview,omitempty"`
}

// Reasons to end a run from outside, as causes of its context.
var (
	// ErrStopped hands the task back: the child saves, the checkpoint is uploaded, another attempt resumes.
	ErrStopped = ended("stopped; the next attempt continues from its checkpoint", "run it again, here or elsewhere")
	// ErrCanceled gives the task up after that.
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

// ended is the error of an interrupted run.
func ended(why, hint string) error {
	return &fault.Error{Op: "run task", Err: errors.New(why), Hint: hint, Kind: fault.ErrTryAgain}
}

// runner is one run of a task.
type runner struct {
	*attempt
	*stager     // its inputs
	*supervisor // its children
	*committer  // its results and checkpoints
}

func newRunner(o *Options) *runner {
	a := newAttempt(o)
	return &runner{a, &stager{attempt: a}, &supervisor{attempt: a}, &committer{a}}
}

// KeyOf is where the results of a task are, below the root of outputs.
func KeyOf(j *spec.Job, t *spec.Task) string { return path.Join(j.Name, t.Name) }

// Run runs the task, unless it has results, and returns their manifest.
func Run(ctx context.Context, o Options) (m *store.Manifest, err error) {
	if o.Index < 0 || o.Index >= len(o.Plan.Tasks) {
		return nil, &fault.Error{Op: "run task",
			Err:  fmt.Errorf("there is no task %d, the job has %d", o.Index, len(o.Plan.Tasks)),
			Hint: "tasks count from 0", Kind: fault.ErrUsage}
	}
	r := newRunner(&o)
	if r.inputs, err = o.Roots.Open(o.Job.Store.Inputs); err != nil {
		return nil, err
	}
	if r.outputs, err = o.Roots.Open(o.Job.Store.Outputs); err != nil {
		return nil, err
	}
	r.inputs, r.outputs = r.attend(ctx, r.inputs), r.attend(ctx, r.outputs)
	r.say("looking for results", true)
	if m, err = r.existing(ctx); err != nil {
		return nil, store.Explain("read results", r.key, r.reason(ctx, err))
	}
	if m != nil {
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

// existing returns the results that are there, nil if the task has to run.
func (r *runner) existing(ctx context.Context) (m *store.Manifest, err error) {
	for outgrown := true; outgrown; {
		// The generation first: a --redo from now on is not about this attempt.
		if r.generation, err = store.Generation(r.outputs, r.key); err != nil {
			return nil, err
		}
		if r.since, err = store.Since(r.outputs, r.key, r.generation); err != nil {
			return nil, err
		}
		if m, err = store.Result(ctx, r.outputs, r.key); err != nil || m == nil {
			return nil, err
		}
		if err = m.Of(r.key, r.hash); err != nil {
			return nil, err
		}
		if outgrown, err = r.outgrown(m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// fits checks the device and the disk.
func (r *runner) fits() error {
	t := r.task
	if lacks := r.Selected.Lacks(t); lacks != "" && t.Kind.NeedsDevice {
		return &fault.Error{Op: "run task", Path: t.Name, Err: errors.New(lacks),
			Hint: "run it on such a machine, or change the job", Kind: store.ErrSetup}
	}
	if free, known := atomicfile.FreeSpace(r.Work); known && free < int64(t.Limits.DiskMinGB)<<30 {
		return &fault.Error{Op: "run task", Path: r.Work, Kind: fault.ErrTryAgain,
			Err: fmt.Errorf("it needs %d GB of free space, there are %d: %w", t.Limits.DiskMinGB, free>>30,
				syscall.ENOSPC),
			Hint: "make room there, or choose another folder with " + fault.Setting("work")}
	}
	return nil
}

// run works in the open folder, and removes it when done.
func (r *runner) run(ctx context.Context) (*store.Manifest, error) {
	m, err := r.perform(ctx)
	for _, release := range r.release {
		release()
	}
	err = errors.Join(err, r.log.Close())
	r.logs.Wait()
	r.uploadLog(r.outputs)
	if err == nil {
		// On an error tidy or gc removes the rest.
		_ = store.Forget(r.outputs, r.key, r.until())
		_ = os.RemoveAll(r.dir)
	}
	return m, err
}

// tidy removes what an attempt left that was killed after its commit, unless a process works there.
func (r *runner) tidy() {
	if last, err := store.LastCheckpoint(r.outputs, r.key); err == nil && last > 0 {
		_ = store.Forget(r.outputs, r.key, r.until()) // gc does, too
	}
	dir, lock := workFolder(r.Work, r.Job, r.task, r.hash)
	if _, err := os.Stat(dir); err != nil {
		return
	}
	if unlock, err := lockfile.Try(lock, lockfile.Exclusive); err == nil {
		_ = os.RemoveAll(dir) // the next one may
		unlock()
	}
}

// perform resumes, works and commits. Results that an earlier attempt here finished but could not commit are reused.
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
	r.freeDevice()
	dir, err := os.OpenRoot(r.out)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // its files are closed
	r.say("committing results", true)
	if ctx.Err() == nil {
		r.outputs = r.attend(ctx, r.outputs) // with fresh patience
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

// outgrown outdates results once inputs exist that they did without. Without Gather all of these must exist.
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

const (
	stateFile = ".farm.json" // who made the files in out; hidden: not a result
	logFile   = "child.log"
	outName   = "out"
)

// lockPatience is how long a task waits for another process at it: a killed one may hold its device for seconds.
const lockPatience = 15 * time.Second

// openWork opens the task's folder for this process alone.
func (r *runner) openWork(ctx context.Context) (unlock func(), err error) {
	dir, lock := workFolder(r.Work, r.Job, r.task, r.hash)
	r.dir = dir
	r.out = filepath.Join(r.dir, outName)
	explain := func(err error) error { return store.Explain("open work folder", r.dir, err) }
	// Locks outlive their folders: a process may wait for one.
	if err := os.MkdirAll(filepath.Dir(lock), 0o777); err != nil {
		return nil, explain(err)
	}
	patient, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err = lockfile.Wait(patient, lock, lockfile.Exclusive)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			return nil, explain(err)
		}
		return nil, &fault.Error{Op: "open work folder", Path: r.dir, Err: err,
			Hint: "another process is running this task: wait for it to finish", Kind: fault.ErrTryAgain}
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	if err := os.MkdirAll(r.out, 0o777); err != nil {
		return nil, explain(err)
	}
	if r.cache, err = store.OpenCache(r.cacheDir(), r.CacheMax); err != nil {
		return nil, explain(err)
	}
	how := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if _, err := os.Stat(r.finishedFile()); err == nil { // keep its log
		how = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	if r.log, err = os.OpenFile(filepath.Join(r.dir, logFile), how, 0o666); err != nil {
		return nil, explain(err)
	}
	if err := locks(lock); err != nil {
		r.say("the work folder's file system has no locks: two processes at one task or input would spoil it; name a "+
			"folder on a local disk with "+fault.Setting("work"), true)
		r.note("the work folder's file system has no locks: " + err.Error())
	}
	return unlock, nil
}

// locks is replaced in tests.
var locks = lockfile.Check
