package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/scene"
)

// mirrorFolder holds in a root of outputs the document of every job of which a worker has begun a task, so that the queue can be rebuilt from the store, until
// gc forgets the job. No job has this name.
const mirrorFolder = "@jobs"

// mirrorKey is where a document is: another one of the same name does not replace it, nor hides behind it.
func mirrorKey(j *spec.Job) string {
	return path.Join(mirrorFolder, spec.Escape(j.Name)+"."+j.Hash()[:16]+".json")
}

// fate is what the store keeps of a job beside its document.
type fate struct {
	Owner    string `json:"owner"`
	Canceled bool   `json:"canceled,omitempty"`
}

// fateKey is where it is, beside the document.
func fateKey(document string) string { return strings.TrimSuffix(document, ".json") + ".state" }

// mirror writes the document of a job to the store, unless it is there, and what has become of the job, as now says it. That is asked right before it is written, and
// once more after: others write what they know too, and whoever is late, as before or after a Retry, must not have the last word with what holds no more.
func (j *job) mirror(outputs store.Root, now func() (fate, error)) error {
	key := mirrorKey(j.Job)
	if _, err := outputs.Stat(key); errors.Is(err, fs.ErrNotExist) {
		err = outputs.Put(key, func(w io.Writer) error {
			_, err := w.Write(j.Canonical())
			return err
		})
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	written, err := readFate(outputs, key)
	if err != nil {
		return err
	}
	for {
		is, err := now()
		if err != nil || is == written {
			return err
		}
		if err := outputs.Put(fateKey(key), func(w io.Writer) error { return json.NewEncoder(w).Encode(is) }); err != nil {
			return err
		}
		written = is
	}
}

// astray says that the store is not the one that results went to, nil where nothing says so: a share that is not mounted may leave an empty folder in its place. A task begins
// once those that it needs are done; where neither the job's document, which was written before they began, nor results of any of them are there, they are elsewhere.
func (r *run) astray() error {
	if !r.Mirror || len(r.task.Needs) == 0 {
		return nil
	}
	keys := []string{mirrorKey(r.job.Job)}
	for _, need := range r.task.Needs {
		keys = append(keys, path.Join(store.OutOf(task.KeyOf(r.job.Job, &r.job.plan.Tasks[need])), store.ManifestName))
	}
	for _, key := range keys {
		if _, err := r.outputs.Stat(key); !errors.Is(err, fs.ErrNotExist) {
			return nil // who reads it says what is wrong with it
		}
	}
	return &scene.Error{Op: "open root", Path: r.job.Store.Outputs, Err: errors.New("it has nothing of the job, of which tasks are done: is this its folder, and is it mounted?"),
		Hint: "mount it where results went", Kind: store.ErrSetup}
}

// readFate reads what is beside a document; of jobs that ran before it was kept there is nothing.
func readFate(root store.Root, document string) (is fate, err error) {
	f, err := root.Open(fateKey(document))
	if errors.Is(err, fs.ErrNotExist) {
		return is, nil
	}
	if err != nil {
		return is, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFate))
	if err := errors.Join(err, f.Close()); err != nil {
		return is, err
	}
	if json.Unmarshal(data, &is) != nil {
		return fate{}, nil // the next task that begins writes it anew
	}
	return is, nil
}

const maxFate = 64 << 10

// fateWithin is how long after a job was canceled workers that start tell the store of it. One that ran at the time has.
const fateWithin = 7 * 24 * time.Hour

// mirrorFates notes in the store which jobs are canceled, where their documents are there: else a rebuilt queue would do them after all.
func (n *node) mirrorFates(ctx context.Context) {
	for ctx.Err() == nil {
		list, _ := n.Queue.List(ctx) // what it does not tell, the store is asked
		told := longCanceled(list, time.Now())
		err := n.Queue.WatchHeads(ctx, func(head queue.Head) {
			if !head.Canceled || reflect.DeepEqual(told[head.Name], head) {
				return // a task that begins says so
			}
			if err := n.mirrorFate(ctx, head.Name); err != nil && ctx.Err() == nil {
				n.Log.Warn("the store was not told that a job is canceled", "job", head.Name, "cause", err)
			}
		})
		if ctx.Err() == nil {
			n.Log.Warn("jobs are not watched", "cause", err)
			rest(ctx, declineFor)
		}
	}
}

// longCanceled are the heads of jobs, by name, that were canceled so long ago that the store knows.
func longCanceled(list []queue.JobStatus, now time.Time) map[string]queue.Head {
	heads := map[string]queue.Head{}
	for _, j := range list {
		if j.Canceled && now.Sub(j.Changed) > fateWithin {
			heads[j.Name] = j.Head
		}
	}
	return heads
}

// errReplaced is of a job in whose place another one of its name is.
var errReplaced = errors.New("the job has been replaced")

// now is what holds of a job.
func (n *node) now(ctx context.Context, j *spec.Job) func() (fate, error) {
	return func() (fate, error) {
		head, err := n.Queue.Head(ctx, j.Name)
		if err == nil && head.Document != j.Hash() {
			err = errReplaced
		}
		return fate{head.Owner, head.Canceled}, err
	}
}

func (n *node) mirrorFate(ctx context.Context, name string) error {
	document, err := n.Queue.Document(ctx, name)
	if errors.Is(err, queue.ErrNoJob) {
		return nil // it was forgotten meanwhile
	}
	if err != nil {
		return err
	}
	parsed, err := spec.Parse(name, document)
	if err != nil {
		return err
	}
	roots, err := n.roots(name)
	if err != nil {
		return err
	}
	outputs, err := roots.Open(parsed.Store.Outputs)
	if err != nil {
		return err
	}
	if _, err := outputs.Stat(mirrorKey(parsed)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // nothing of it was begun
		}
		return err
	}
	err = (&job{Job: parsed}).mirror(outputs, n.now(ctx, parsed))
	if errors.Is(err, queue.ErrNoJob) || errors.Is(err, errReplaced) {
		return nil
	}
	return err
}

// Inventory is what stores say of jobs.
type Inventory struct {
	roots   map[string]store.Root
	jobs    map[string]*job      // by the SHA-256 of the document
	bad     map[place]error      // what is damaged of results that were looked at
	damaged map[string]*spec.Job // by root and key, what Documents found damaged, as it should be
}

// place is a task of a job.
type place struct {
	job   string
	index int
}

// Damage says which file of a task's results Manifest found damaged, nil for none.
func (v *Inventory) Damage(job string, index int) error { return v.bad[place{job, index}] }

// NewInventory opens all roots of a worker.
func NewInventory(roots store.Roots) (*Inventory, error) {
	v := &Inventory{roots: map[string]store.Root{}, jobs: map[string]*job{}, bad: map[place]error{}, damaged: map[string]*spec.Job{}}
	for name := range roots {
		root, err := roots.Open(name)
		if err != nil {
			return nil, err
		}
		v.roots[name] = root
	}
	return v, nil
}

// Jobs implements queue.Inventory.
func (v *Inventory) Jobs(ctx context.Context, fn func(queue.JobPlan, error) error) error {
	for _, name := range slices.Sorted(maps.Keys(v.roots)) {
		list, err := v.roots[name].List(mirrorFolder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		slices.SortStableFunc(list, func(a, b store.Entry) int { return a.Modified.Compare(b.Modified) })
		for _, e := range list {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if path.Ext(e.Key) != ".json" {
				continue
			}
			if err := v.job(name, e, fn); err != nil {
				return fmt.Errorf("%s: %w", e.Key, err)
			}
		}
	}
	return nil
}

// job reads one, unless its results go to another root.
func (v *Inventory) job(root string, e store.Entry, fn func(queue.JobPlan, error) error) error {
	data, err := readDocument(v.roots[root], e.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the job has just been forgotten
	}
	if err != nil {
		return err
	}
	bad := func(err error) error { return fn(queue.JobPlan{Name: v.roots[root].String() + "/" + e.Key}, err) }
	parsed := v.damaged[path.Join(root, e.Key)]
	if parsed == nil {
		if parsed, err = spec.Parse(path.Base(e.Key), data); err != nil {
			return bad(err)
		}
	}
	if parsed.Store.Outputs != root {
		return nil
	}
	if err := v.add(parsed); err != nil {
		return bad(err)
	}
	is, err := readFate(v.roots[root], e.Key)
	if err != nil {
		return err
	}
	p, err := JobPlan(parsed, is.Owner)
	if err != nil {
		return bad(err)
	}
	p.Canceled = is.Canceled
	return fn(p, nil)
}

func (v *Inventory) add(parsed *spec.Job) error {
	plan, err := parsed.Plan()
	if err == nil {
		v.jobs[parsed.Hash()] = &job{Job: parsed, plan: plan}
	}
	return err
}

// Add implements queue.Inventory.
func (v *Inventory) Add(document []byte) error {
	parsed, err := spec.Parse("job", document)
	if err != nil {
		return err
	}
	if v.roots[parsed.Store.Outputs] == nil {
		return fmt.Errorf("no root has the name %s here", parsed.Store.Outputs)
	}
	return v.add(parsed)
}

// Manifest implements queue.Inventory. All files are read.
func (v *Inventory) Manifest(ctx context.Context, document string, index int, _ queue.Task) (sum string, generation int, err error) {
	j := v.jobs[document]
	if j == nil || index < 0 || index >= len(j.plan.Tasks) {
		return "", 0, nil
	}
	root, key := v.roots[j.Store.Outputs], task.KeyOf(j.Job, &j.plan.Tasks[index])
	out := store.OutOf(key)
	now, err := store.Generation(root, key)
	if err != nil {
		return "", 0, err
	}
	m, err := store.ReadManifest(root, out)
	if err == nil {
		err = store.Verify(ctx, root, out, m)
	}
	if errors.Is(err, store.ErrDamaged) {
		v.bad[place{j.Job.Name, index}] = err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrDamaged), err == nil && (m.Hash != j.plan.Hash(index) || m.Generation < now):
		return "", 0, nil
	case err != nil:
		return "", 0, err
	}
	return m.Contents(), m.Generation, nil
}

// Attempts implements queue.Inventory.
func (v *Inventory) Attempts(_ context.Context, document string, index int) (int, error) {
	j := v.jobs[document]
	if j == nil || index < 0 || index >= len(j.plan.Tasks) {
		return 0, nil
	}
	return task.LastAttempt(v.roots[j.Store.Outputs], task.KeyOf(j.Job, &j.plan.Tasks[index]))
}

// Sweep removes what attempts of a job that has ended, and is to be forgotten, left beside results: half commits, outdated results, checkpoints, also those of tasks that
// failed, which nobody would own any more, and its document: else Fsck would submit it again.
func Sweep(roots store.Roots, j *spec.Job) error {
	root, err := roots.Open(j.Store.Outputs)
	if err != nil {
		return err
	}
	plan, err := j.Plan()
	if err != nil {
		return err
	}
	for i := range plan.Tasks {
		key := task.KeyOf(j, &plan.Tasks[i])
		if err := store.Sweep(root, key); err != nil {
			return err
		}
		if err := store.Forget(root, key, store.AllAttempts); err != nil {
			return err
		}
	}
	return forgetDocuments(root, j.Name)
}

// forgetDocuments removes the documents of all jobs of a name.
func forgetDocuments(root store.Root, name string) error {
	list, err := root.List(mirrorFolder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range list {
		if of, _, _ := strings.Cut(path.Base(e.Key), "."); of != spec.Escape(name) { // which has no dot
			continue
		}
		if err := root.Delete(e.Key); err != nil {
			return err
		}
	}
	return nil
}
