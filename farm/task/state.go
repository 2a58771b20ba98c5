package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
)

const (
	// who has worked on what is in the folder of the results so far; hidden: it is none of them
	stateFile = ".farm.json"
	logFile   = "child.log"
	outName   = "out"
)

// lockPatience is how long a task waits for another process that works on it: one that was killed may take seconds to
// give its device back.
const lockPatience = 15 * time.Second

// openWork opens the task's folder for this process alone.
func (r *runner) openWork(ctx context.Context) (unlock func(), err error) {
	dir, lock := workFolder(r.Work, r.Job, r.task, r.hash)
	r.dir = dir
	r.out = filepath.Join(r.dir, outName)
	explain := func(err error) error { return store.Explain("open work folder", r.dir, err) }
	// Locks stay when their folders go: nobody can tell whether somebody waits for one.
	if err := os.MkdirAll(filepath.Dir(lock), 0o777); err != nil {
		return nil, explain(err)
	}
	patient, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err = store.Lock(patient, lock)
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
	if _, err := os.Stat(r.finishedFile()); err == nil { // what made these results said it there
		how = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	if r.log, err = os.OpenFile(filepath.Join(r.dir, logFile), how, 0o666); err != nil {
		return nil, explain(err)
	}
	if err := locks(lock); err != nil {
		r.say("the work folder's file system has no locks, so two processes could corrupt a task or an input: choose "+
			"a folder on a local disk with "+fault.Setting("work"), true)
		r.note("the work folder's file system has no locks: " + err.Error())
	}
	return unlock, nil
}

// locks is the store's. Tests have it refuse.
var locks = store.Locks

// resume brings the newest checkpoint into the folder of the results, unless this machine has a newer one, and notes
// whether other devices made it.
func (r *runner) resume(ctx context.Context) error {
	r.say("looking for a checkpoint", true)
	if err := r.readState(); err != nil {
		return err
	}
	step, err := r.fetch(ctx, r.newest())
	if err != nil {
		return err
	}
	r.from = step
	now := r.Selected
	if step > 0 && (now.Name != r.state.Device || now.Driver != r.state.Driver) {
		r.state.Mixed = true
		r.state.Notes = append(r.state.Notes,
			fmt.Sprintf("from step %d on %s (%s), before on %s (%s)", step, now.Name, now.Driver, r.state.Device,
				r.state.Driver))
	}
	r.state.Device, r.state.Driver = now.Name, now.Driver
	r.state.Inputs, r.state.Generation = r.given, r.generation
	if step > 0 {
		r.step(step, 0, false)
		r.say(fmt.Sprintf("resuming from step %d", step), true)
	}
	return r.saveState(r.out)
}

// readState finds out who has worked on what is in the folder of the results. What was made from other results of other
// tasks than there are now, or is wanted anew, is removed: nothing is made from both. Without a state nobody knows, and
// there is nothing either unless this was interrupted.
func (r *runner) readState() error {
	file := filepath.Join(r.out, stateFile)
	data, err := os.ReadFile(file)
	if err == nil && json.Unmarshal(data, &r.state) == nil && r.state.Inputs == r.given &&
		r.state.Generation >= r.since {
		return nil
	}
	r.state = store.Made{}
	if r.newest() > 0 {
		r.say("ignoring the files of an earlier attempt: its inputs have changed, or --redo was given",
			true)
	}
	// The state goes first: without it nothing of the rest is used.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return emptied(r.out)
}

// fetch replaces the folder of the results by a checkpoint from the store, if that is newer than what it has, and
// returns the step from which the work goes on. The folder changes as a whole, with what is known of who made it: a
// process that is killed here leaves no mixture.
func (r *runner) fetch(ctx context.Context, local int) (step int, err error) {
	fresh, old := filepath.Join(r.dir, "fetched"), filepath.Join(r.dir, "old")
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(old), os.MkdirAll(fresh, 0o777)); err != nil {
		return 0, err
	}
	to, err := os.OpenRoot(fresh)
	if err != nil {
		return 0, err
	}
	m, err := store.Fetch(ctx, r.outputs, r.key, to, r.made(0), local)
	if err := errors.Join(err, to.Close()); err != nil {
		return 0, err
	}
	if m == nil {
		return local, os.RemoveAll(fresh)
	}
	r.state = m.Made
	if err := errors.Join(r.saveState(fresh), os.Rename(r.out, old), os.Rename(fresh, r.out)); err != nil {
		return 0, err
	}
	r.stored = m.Step
	return m.Step, os.RemoveAll(old)
}

// saveState writes into a folder who has worked on what is in it.
func (r *runner) saveState(dir string) error {
	data, err := json.Marshal(&r.state)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, stateFile), data, 0o666)
}

// Names of train's checkpoints in its folder.
const (
	checkpointFolder = "checkpoints"
	checkpointPrefix = "step_"
	checkpointSuffix = ".safetensors"
)

// trains says whether the child writes checkpoints.
func (r *runner) trains() bool { return r.task.Kind.Trains }

// resumes says whether an attempt goes on with what an earlier one left.
func (r *runner) resumes() bool {
	k := r.task.Kind
	return k.Trains || k.Draws || k.Stages
}

// checkpointStep is the step of a checkpoint's file, by its name below the results; -1 for other files.
func checkpointStep(name string) int {
	if path.Dir(name) != checkpointFolder {
		return -1
	}
	digits, isCheckpoint := strings.CutPrefix(path.Base(name), checkpointPrefix)
	digits, whole := strings.CutSuffix(digits, checkpointSuffix)
	step, err := strconv.Atoi(digits)
	if !isCheckpoint || !whole || err != nil {
		return -1
	}
	return step
}

// newest is how far the work in the folder has come: the step of the newest checkpoint, or the number of pictures.
func (r *runner) newest() int {
	if r.task.Kind.Draws {
		return r.pictures()
	}
	best := 0
	entries, err := os.ReadDir(filepath.Join(r.out, checkpointFolder))
	if err != nil || !r.trains() {
		return 0
	}
	for _, e := range entries {
		best = max(best, checkpointStep(checkpointFolder+"/"+e.Name()))
	}
	return best
}

// recordOfRender is the file in which render says what it draws. It is no picture.
const recordOfRender = "render.json"

// pictures counts what a render has written.
func (r *runner) pictures() (n int) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && name != recordOfRender && !strings.HasPrefix(name, ".") &&
			!spec.Beside(name) {
			n++
		}
	}
	return n
}

// isScratch says that a file is none of the results.
func (r *runner) isScratch(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	scratch := r.task.Kind.Scratch
	return r.trains() && first == checkpointFolder || slices.Contains(scratch, first) || slices.Contains(scratch, name)
}
