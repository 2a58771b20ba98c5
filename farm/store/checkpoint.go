package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// A checkpoint is a set of files from which another machine goes on: <task>/ckpt/step-<step>-a<attempt>.json lists them, <task>/ckpt/files/<sha256> has each
// content once, so that pictures that are done go up one time only.

// keptCheckpoints is how many of a hash stay: the newest may turn out to be damaged.
const keptCheckpoints = 2

// Uploads uploads the checkpoints of one run of a task.
type Uploads struct {
	Root Root
	Task string
	Dir  *os.Root // the work folder

	sent map[string]sent // by name
}

// sent is a file as it was when it went up.
type sent struct {
	size     int64
	modified time.Time
	file     File
}

func checkpointKey(task string, step, attempt int) string {
	return path.Join(task, ckptFolder, fmt.Sprintf("step-%09d-a%05d.json", step, attempt))
}

func contentKey(task, sum string) string { return path.Join(task, ckptFolder, "files", sum) }

// Save uploads files as the checkpoint of a step. Where one is there no more, nothing is saved, and the error is fs.ErrNotExist. Older ones than the newest two of the
// same hash are removed.
func (u *Uploads) Save(ctx context.Context, names []string, made Made) error {
	if u.sent == nil {
		u.sent = map[string]sent{}
	}
	m := &Manifest{Version: manifestVersion, Made: made, Files: []File{}}
	for _, name := range names {
		file, err := u.send(ctx, name)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, file)
	}
	key := checkpointKey(u.Task, made.Step, made.Attempt)
	if err := putJSON(u.Root, key, m); err != nil {
		return err
	}
	return u.prune(key, made.Hash)
}

// send uploads a file, unless its content is there.
func (u *Uploads) send(ctx context.Context, name string) (File, error) {
	info, err := u.Dir.Stat(name)
	if err != nil {
		return File{}, err
	}
	if s, known := u.sent[name]; known && s.size == info.Size() && s.modified.Equal(info.ModTime()) {
		return s.file, nil
	}
	sum, err := hashOf(ctx, u.Dir, name)
	if err != nil {
		return File{}, err
	}
	there, err := u.Root.Stat(contentKey(u.Task, sum.SHA256))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return File{}, err
	}
	if err != nil || there.Size != sum.Size {
		err := u.Root.Put(contentKey(u.Task, sum.SHA256), func(w io.Writer) error {
			f, err := u.Dir.Open(name)
			if err != nil {
				return err
			}
			defer f.Close() // only read
			m := newMeter(ctx, w)
			if _, err := io.CopyN(m, f, sum.Size); err != nil {
				return err
			}
			if m.sum() != sum.SHA256 {
				return fmt.Errorf("%s changed while it was uploaded", name)
			}
			return nil
		})
		if err != nil {
			return File{}, err
		}
	}
	u.sent[name] = sent{info.Size(), info.ModTime(), sum}
	return sum, nil
}

// hashOf hashes as much of a local file as it has now: it may grow.
func hashOf(ctx context.Context, dir *os.Root, name string) (File, error) {
	f, err := dir.Open(name)
	if err != nil {
		return File{}, err
	}
	defer f.Close() // only read
	m := newMeter(ctx, io.Discard)
	_, err = io.Copy(m, f)
	return File{name, m.n, m.sum()}, err
}

// prune removes the checkpoints of a hash that are older than the newest ones of it, but never that under written, and the contents that only these had. What
// other settings made of a task of this name counts for itself, however far it came.
func (u *Uploads) prune(written, hash string) error {
	keys, err := checkpoints(u.Root, u.Task)
	if err != nil || len(keys) <= keptCheckpoints {
		return err
	}
	newer, kept := 0, map[string]bool{}
	old := map[string]*Manifest{}
	for _, key := range slices.Backward(keys) {
		m, err := readManifest(u.Root, key)
		switch {
		case errors.Is(err, fs.ErrNotExist): // another attempt was faster
			continue
		case errors.Is(err, ErrDamaged): // nobody goes on from it; Forget removes what it had
			old[key] = &Manifest{}
			continue
		case err != nil:
			return err
		}
		if m.Hash == hash {
			newer++
		}
		if m.Hash == hash && newer > keptCheckpoints && key != written {
			old[key] = m
			continue
		}
		for _, f := range m.Files {
			kept[f.SHA256] = true
		}
	}
	for key, m := range old {
		if err := u.remove(key, m, kept); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a checkpoint, and of its contents those that are not kept.
func (u *Uploads) remove(key string, m *Manifest, kept map[string]bool) error {
	if err := u.Root.Delete(key); err != nil {
		return err
	}
	for _, f := range m.Files {
		if kept[f.SHA256] {
			continue
		}
		if err := u.Root.Delete(contentKey(u.Task, f.SHA256)); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints lists the checkpoints of a task, the newest last.
func checkpoints(r Root, task string) (keys []string, err error) {
	list, err := r.List(path.Join(task, ckptFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		if name := path.Base(e.Key); strings.HasPrefix(name, "step-") && strings.HasSuffix(name, ".json") {
			keys = append(keys, e.Key)
		}
	}
	slices.Sort(keys)
	return keys, err
}

// Fetch brings the newest checkpoint of the task with a hash that verifies and is of a step above after into the local folder dir, and returns its manifest; nil where there is none.
func Fetch(ctx context.Context, r Root, task string, dir *os.Root, hash string, after int) (*Manifest, error) {
	keys, err := checkpoints(r, task)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Backward(keys) {
		m, err := readManifest(r, key)
		if err != nil || m.Hash != hash {
			continue // of another task of this name, or damaged: an older one may do
		}
		if m.Step <= after {
			return nil, nil
		}
		err = fetch(ctx, r, task, dir, m)
		if err == nil {
			return m, nil
		}
		if !errors.Is(err, ErrDamaged) {
			return nil, err
		}
	}
	return nil, nil
}

// fetch copies the files of a checkpoint.
func fetch(ctx context.Context, r Root, task string, dir *os.Root, m *Manifest) error {
	for _, f := range m.Files {
		if err := toLocal(ctx, r, contentKey(task, f.SHA256), f, dir); err != nil {
			return err
		}
	}
	return nil
}

// toLocal copies a file to dir under its name, and checks it on the way.
func toLocal(ctx context.Context, r Root, key string, want File, dir *os.Root) error {
	if err := dir.MkdirAll(path.Dir(want.Name), 0o777); err != nil {
		return err
	}
	f, err := dir.Create(want.Name)
	if err != nil {
		return err
	}
	err = copyFile(ctx, r, key, want, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, dir.Remove(want.Name))
	}
	return nil
}

// Forget removes the checkpoints of a task, which is done.
func Forget(r Root, task string) error { return r.Delete(path.Join(task, ckptFolder)) }
