package task

import (
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
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
)

// attempt is what all parts of a run share.
type attempt struct {
	*Options
	*workdir
	*reporter
	fenced     bool // attempts with higher numbers are later ones
	inputs     store.Root
	outputs    store.Root
	cache      *store.Cache
	key        string     // of the task below outputs
	hash       string     // of the task's settings
	generation int        // of its results, when the attempt began
	since      int        // the first generation whose checkpoints it resumes
	absent     []int      // failed tasks that it does without
	given      string     // SHA-256 of the results of other tasks that it reads, "" without any
	stored     int        // step of the checkpoint fetched from the store, 0 without
	from       int        // step that it resumes from
	state      store.Made // who made the files in out: devices, notes, inputs
	staged     []place    // local copies of inputs
}

// newAttempt describes an attempt at a task of a plan.
func newAttempt(o *Options) *attempt {
	t := &o.Plan.Tasks[o.Index]
	a := &attempt{Options: o, workdir: &workdir{task: t}, fenced: o.Attempt > 0 || o.Fenced, key: KeyOf(o.Job, t),
		hash:     o.Plan.Hash(o.Index),
		reporter: &reporter{options: o, kind: t.Kind.Name, moved: time.Now()}}
	a.now.Task, a.now.Unit = t.Name, unit(t.Kind)
	return a
}

func (a *attempt) isAbsent(task int) bool { return slices.Contains(a.absent, task) }

// steps is the number of steps or pictures done.
func (a *attempt) steps() int {
	if n := a.newest(); n > 0 {
		return n
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.now.Step
}

// attend returns a root that reports waits for its store, and gives up soon after ctx ends.
func (a *attempt) attend(ctx context.Context, root store.Root) store.Root {
	a.mutex.Lock()
	a.waiting = ""
	a.mutex.Unlock()
	return root.Attend(ctx, a.onWait)
}

// made describes the results or checkpoint of a step.
func (a *attempt) made(step int) store.Made {
	return store.Made{Job: a.Job.Name, JobHash: a.Job.Hash(), Task: a.task.Name, Hash: a.hash, Index: a.task.Index,
		Kind: a.task.Kind.Name, Attempt: a.Attempt, Inputs: a.given, Generation: a.generation, Since: a.since,
		Step: step, Program: a.Version, Device: a.state.Device, UUID: a.Selected.UUID, Driver: a.state.Driver,
		Mixed: a.state.Mixed, Notes: a.state.Notes, Missing: a.missing()}
}

// missing names the tasks in absent.
func (a *attempt) missing() (names []string) {
	for _, k := range a.absent {
		names = append(names, a.Plan.Tasks[k].Name)
	}
	return names
}

// reason replaces an error by the cause of ctx, once that has ended.
func (a *attempt) reason(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// until is the highest attempt whose checkpoints this one may remove: all, unless an engine numbers the attempts.
func (a *attempt) until() int {
	if a.fenced {
		return a.Attempt
	}
	return store.AllAttempts
}

// logFolder holds the logs of a task's attempts.
const logFolder = "log"

// logKey is where the log of an attempt goes.
func (a *attempt) logKey() string {
	return path.Join(a.key, logFolder, fmt.Sprintf("a%05d.log", a.Attempt))
}

// lastAttempt is the highest attempt at a task that has left a log or a checkpoint in the store.
func lastAttempt(outputs store.Root, key string) (last int, err error) {
	list, _, err := outputs.List(path.Join(key, logFolder))
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

// number numbers an attempt that its caller has not, and creates its log: this claims the number, even if the attempt
// is killed.
func (a *attempt) number() error {
	if a.Attempt > 0 {
		_ = a.outputs.Put(a.logKey(), func(io.Writer) error { return nil }) // results fail too
		return nil
	}
	last, err := lastAttempt(a.outputs, a.key)
	if err != nil {
		return err
	}
	for a.Attempt = last + 1; ; a.Attempt++ {
		if err := a.outputs.Claim(a.logKey()); !errors.Is(err, store.ErrExists) || a.Attempt == last+mostAtOnce {
			return err
		}
	}
}

// mostAtOnce bounds the attempts that start at the same moment.
const mostAtOnce = 1000

// uploadLog uploads the log. An error is ignored: results do not need it.
func (a *attempt) uploadLog(root store.Root) {
	_ = root.Put(a.logKey(), func(w io.Writer) error {
		f, err := os.Open(a.log.Name())
		if err != nil {
			return err
		}
		defer f.Close() // only read
		_, err = io.Copy(w, f)
		return err
	})
}

// workFolder is the folder of a task below work, and its lock. Equal tasks of one job, or of two people, have different
// folders: they must not wait for each other.
func workFolder(work string, j *spec.Job, t *spec.Task, hash string) (dir, lock string) {
	own := sha256.Sum256([]byte(strings.Join([]string{j.Store.Inputs, j.Store.Outputs, KeyOf(j, t), hash}, "\x00")))
	name := hex.EncodeToString(own[:12])
	return filepath.Join(work, name), filepath.Join(work, "locks", name)
}

// cacheDir is the folder of inputs that all tasks below Work share.
func (a *attempt) cacheDir() string { return filepath.Join(a.Work, "cache") }
