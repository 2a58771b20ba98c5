package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
)

// mirrorFolder holds in a root of outputs the document of every job of which a worker has begun a task, so that the queue can be rebuilt from the store, until
// gc forgets the job. No job has this name.
const mirrorFolder = "@jobs"

// mirrorKey is where a document is: another one of the same name does not replace it, nor hides behind it.
func mirrorKey(j *spec.Job) string {
	return path.Join(mirrorFolder, spec.Escape(j.Name)+"."+j.Hash()[:16]+".json")
}

// mirror writes the document of a job to the store, unless it is there.
func (j *job) mirror(outputs store.Root) error {
	if _, err := outputs.Stat(mirrorKey(j.Job)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return outputs.Put(mirrorKey(j.Job), func(w io.Writer) error {
		_, err := w.Write(j.Canonical())
		return err
	})
}

// Inventory is what stores say of jobs.
type Inventory struct {
	roots map[string]store.Root
	jobs  map[string]*job // by the SHA-256 of the document
}

// NewInventory opens all roots of a worker.
func NewInventory(roots store.Roots) (*Inventory, error) {
	v := &Inventory{roots: map[string]store.Root{}, jobs: map[string]*job{}}
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
func (v *Inventory) Jobs(ctx context.Context, fn func(queue.JobPlan) error) error {
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
			if err := v.job(name, e, fn); err != nil {
				return fmt.Errorf("%s: %w", e.Key, err)
			}
		}
	}
	return nil
}

// job reads one, unless its results go to another root.
func (v *Inventory) job(root string, e store.Entry, fn func(queue.JobPlan) error) error {
	f, err := v.roots[root].Open(e.Key)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, spec.MaxDocument+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	parsed, err := spec.Parse(path.Base(e.Key), data)
	if err != nil {
		return err
	}
	if parsed.Store.Outputs != root {
		return nil
	}
	plan, err := parsed.Plan()
	if err != nil {
		return err
	}
	v.jobs[parsed.Hash()] = &job{Job: parsed, plan: plan}
	p, err := JobPlan(parsed, "")
	if err != nil {
		return err
	}
	return fn(p)
}

// Manifest implements queue.Inventory. All files are read.
func (v *Inventory) Manifest(ctx context.Context, document string, index int, _ queue.Task) (string, error) {
	j := v.jobs[document]
	if j == nil || index < 0 || index >= len(j.plan.Tasks) {
		return "", nil
	}
	root, out := v.roots[j.Store.Outputs], store.OutOf(task.KeyOf(j.Job, &j.plan.Tasks[index]))
	m, err := store.ReadManifest(root, out)
	if err == nil {
		err = store.Verify(ctx, root, out, m)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrDamaged), err == nil && m.Hash != j.plan.Hash(index):
		return "", nil
	case err != nil:
		return "", err
	}
	return m.Contents(), nil
}

// Sweep removes what attempts of a job that has ended, and is to be forgotten, left beside results: half commits, outdated results, checkpoints of what is done,
// the count of retries by hand, which begins anew with the job, and its document: else Fsck would submit it again.
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
		if err := store.ForgetGeneration(root, key); err != nil {
			return err
		}
		if _, err := store.ReadManifest(root, store.OutOf(key)); err != nil {
			continue // its checkpoint may be wanted yet
		}
		if err := store.Forget(root, key); err != nil {
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
