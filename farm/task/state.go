package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/scene"
)

// state is the content of stateFile: who has worked in a task's folder so far.
type state struct {
	Device string   `json:"device"`
	Driver string   `json:"driver"`
	Mixed  bool     `json:"mixed"`
	Notes  []string `json:"notes,omitempty"`
}

const (
	stateFile = "state.json"
	logFile   = "child.log"
	outName   = "out"
)

// lockPatience is how long a task waits for another process that works on it: one that was killed may take seconds to give its device back.
const lockPatience = 15 * time.Second

// openWork opens the task's folder for this process alone.
func (r *runner) openWork(ctx context.Context) (unlock func(), err error) {
	r.dir = filepath.Join(r.Work, r.workName())
	r.out = filepath.Join(r.dir, outName)
	explain := func(err error) error { return store.Explain("open work folder", r.dir, err) }
	locks := filepath.Join(r.Work, "locks") // which stay when their folders go: nobody can tell whether somebody waits for one
	if err := os.MkdirAll(locks, 0o777); err != nil {
		return nil, explain(err)
	}
	patient, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err = store.Lock(patient, filepath.Join(locks, r.workName()))
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &scene.Error{Op: "open work folder", Path: r.dir, Err: err, Hint: "another process works on this task: wait until it has ended", Kind: scene.ErrTryAgain}
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
	if r.log, err = os.Create(filepath.Join(r.dir, logFile)); err != nil {
		return nil, explain(err)
	}
	return unlock, nil
}

// resume brings the newest checkpoint into dir, unless this machine has a newer one, and notes whether other devices made it.
func (r *runner) resume(ctx context.Context, dir *os.Root) error {
	r.say("looking for a checkpoint", true)
	local := r.newest()
	data, err := os.ReadFile(filepath.Join(r.dir, stateFile))
	if err != nil || json.Unmarshal(data, &r.state) != nil {
		r.state = state{}
	}
	// What is there of an older state must not mix with a newer one: it comes whole into a folder of its own.
	fresh := filepath.Join(r.dir, "fetched")
	if err := errors.Join(os.RemoveAll(fresh), os.MkdirAll(fresh, 0o777)); err != nil {
		return err
	}
	defer os.RemoveAll(fresh) // nobody looks at it later
	to, err := os.OpenRoot(fresh)
	if err != nil {
		return err
	}
	m, err := store.Fetch(ctx, r.outputs, r.key, to, r.Job.Hash(), local)
	if m != nil {
		r.state = state{m.Device, m.Driver, m.Mixed, m.Notes}
		local = m.Step
		err = errors.Join(err, moveInto(to, dir))
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	now := r.Selected
	if local > 0 && (now.Name != r.state.Device || now.Driver != r.state.Driver) {
		r.state.Mixed = true
		r.state.Notes = append(r.state.Notes, fmt.Sprintf("from step %d on %s (%s), before on %s (%s)", local, now.Name, now.Driver, r.state.Device, r.state.Driver))
	}
	r.state.Device, r.state.Driver = now.Name, now.Driver
	if local > 0 {
		r.step(local, 0)
		r.say(fmt.Sprintf("going on from step %d", local), true)
	}
	return r.saveState()
}

func (r *runner) saveState() error {
	data, err := json.Marshal(&r.state)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, stateFile), data, 0o666)
}

// moveInto replaces what is in a folder by what is in another.
func moveInto(from, to *os.Root) error {
	if err := emptied(to.Name()); err != nil {
		return err
	}
	entries, err := os.ReadDir(from.Name())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from.Name(), e.Name()), filepath.Join(to.Name(), e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Names of train's checkpoints in its folder.
const (
	checkpointFolder = "checkpoints"
	checkpointPrefix = "step_"
	checkpointSuffix = ".safetensors"
)

// trains says whether the child writes checkpoints.
func (r *runner) trains() bool { return r.task.Kind == spec.KindTrain || r.task.Kind == spec.KindBlock }

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
	if r.task.Kind == spec.KindRender {
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
		if name := e.Name(); e.Type().IsRegular() && name != recordOfRender && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".depth.npy") {
			n++
		}
	}
	return n
}

// isScratch says that a file is none of the results.
func (r *runner) isScratch(name string) bool {
	return r.trains() && strings.HasPrefix(name, checkpointFolder+"/")
}
