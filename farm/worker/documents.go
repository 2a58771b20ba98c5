package worker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
)

// Documents compares the documents of jobs in the store with those of the queue: they may be damaged, or be lost though results of the job are there. With repair they are
// written anew. From then on Jobs gives these jobs as the queue has them.
func (v *Inventory) Documents(ctx context.Context, q *queue.Queue, repair bool) (findings []queue.Finding, err error) {
	heads, err := q.Heads(ctx)
	if err != nil {
		return nil, err
	}
	for _, head := range heads {
		if ctx.Err() != nil {
			return findings, context.Cause(ctx)
		}
		document, err := q.Document(ctx, head.Name)
		if err != nil || head.Forgotten {
			continue // Fsck says what is wrong
		}
		parsed, err := spec.Parse(head.Name, document)
		if err != nil || v.roots[parsed.Store.Outputs] == nil {
			continue
		}
		what, err := v.lacks(ctx, q, parsed)
		if err != nil {
			return findings, store.Explain("read job", v.place(parsed), err)
		}
		if what == "" {
			continue
		}
		f := queue.Finding{Job: head.Name, Index: -1, What: what + ": " + v.place(parsed), Mends: true}
		if repair {
			if err := v.mend(ctx, q, parsed); err != nil {
				return append(findings, f), store.Explain("write job", v.place(parsed), err)
			}
			f.Repaired = true
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// place is where the store has the document of a job, for people.
func (v *Inventory) place(j *spec.Job) string {
	return v.roots[j.Store.Outputs].String() + "/" + mirrorKey(j)
}

// lacks says what is wrong with the document of a job in the store, "" for nothing.
func (v *Inventory) lacks(ctx context.Context, q *queue.Queue, j *spec.Job) (what string, err error) {
	root, key := v.roots[j.Store.Outputs], mirrorKey(j)
	data, err := readDocument(root, key)
	if errors.Is(err, fs.ErrNotExist) {
		if is, err := v.isHome(ctx, q, j); err != nil || !is {
			return "", err
		}
		return "the store has results of it, but lacks its document", nil
	}
	if err != nil || bytes.Equal(data, j.Canonical()) {
		return "", err
	}
	v.damaged[path.Join(j.Store.Outputs, key)] = j
	return "its document in the store is damaged", nil
}

// isHome says whether a root that lacks the document of a job is the one that its results went to, and not an empty folder in the place of a share: it has those of all tasks
// that have succeeded, or where none has, logs of attempts. Else the missing document is what keeps Fsck from having everything done again.
func (v *Inventory) isHome(ctx context.Context, q *queue.Queue, j *spec.Job) (is bool, err error) {
	_, tasks, err := q.Show(ctx, j.Name)
	if err != nil {
		return false, nil // Fsck says what is wrong
	}
	root := v.roots[j.Store.Outputs]
	for _, t := range tasks {
		key := path.Join(j.Name, t.Name)
		switch {
		case t.State == queue.Succeeded:
			if _, err := root.Stat(path.Join(store.OutOf(key), store.ManifestName)); errors.Is(err, fs.ErrNotExist) {
				return false, nil
			} else if err != nil {
				return false, err
			}
			is = true
		case t.Entry.Attempt > 0 && !is:
			last, err := task.LastAttempt(root, key)
			if err != nil {
				return false, err
			}
			is = last > 0
		}
	}
	return is, nil
}

// mend writes the document of a job anew. Who forgets the job meanwhile removes it from the store first, and must not find it there again.
func (v *Inventory) mend(ctx context.Context, q *queue.Queue, parsed *spec.Job) error {
	root, key := v.roots[parsed.Store.Outputs], mirrorKey(parsed)
	err := root.Put(key, func(w io.Writer) error {
		_, err := w.Write(parsed.Canonical())
		return err
	})
	if err != nil {
		return err
	}
	n := &node{Options: Options{Queue: q}}
	err = (&job{Job: parsed}).mirror(root, n.now(ctx, parsed))
	head, gone := q.Head(ctx, parsed.Name)
	if errors.Is(err, errReplaced) || errors.Is(gone, queue.ErrNoJob) || gone == nil && (head.Forgotten || head.Document != parsed.Hash()) {
		return errors.Join(root.Delete(key), root.Delete(fateKey(key)))
	}
	return err
}

// readDocument reads a document of a job, and not much more than one may have.
func readDocument(root store.Root, key string) ([]byte, error) {
	f, err := root.Open(key)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, spec.MaxDocument+1))
	return data, errors.Join(err, f.Close())
}

// IsDocument says whether a finding is about a document in the store that cannot be used, and of which the queue knows nothing.
func IsDocument(f queue.Finding) bool {
	return f.Index < 0 && strings.Contains(f.Job, "/"+mirrorFolder+"/")
}
