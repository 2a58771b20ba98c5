package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"vksplat/farm/store"
	"vksplat/internal/atomicfile"
	"vksplat/internal/child"
	"vksplat/internal/fault"
)

// finishedFile says in a task's folder that what is in outName are its results, whole and on the disk, once the texts
// of placelessName are moved there: the next attempt here has only to commit them, where the store was away or this one
// was killed. It goes before anything there changes.
const finishedFile = "finished.json"

// finished is the content of finishedFile.
type finished struct {
	Made  store.Made     `json:"made"`
	Files []finishedItem `json:"files"`
}

type finishedItem struct {
	Name     string    `json:"name"` // with slashes
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

func (r *runner) finishedFile() string { return filepath.Join(r.dir, finishedFile) }

func (f *finished) names() (names []string) {
	for _, item := range f.Files {
		names = append(names, item.Name)
	}
	return names
}

// finish resumes and works until there are results.
func (r *runner) finish(ctx context.Context) (*finished, error) {
	if err := r.unfinish(); err != nil {
		return nil, err
	}
	if err := r.resume(ctx); err != nil {
		return nil, store.Explain("fetch checkpoint", r.key, r.reason(ctx, err))
	}
	dir, err := os.OpenRoot(r.out)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // its files are closed
	if err := r.work(ctx, dir); err != nil {
		return nil, r.refused(err)
	}
	r.leavesDevice() // the disk may take long
	r.readStats()
	if err := r.forgetStops(dir); err != nil {
		return nil, err
	}
	if err := r.unplace(dir); err != nil {
		return nil, err
	}
	f := &finished{Made: r.made(r.steps())}
	if f.Files, err = r.listed(dir, true); err != nil {
		return nil, err
	}
	if err := atomicfile.WriteJSON(r.finishedFile(), f, ""); err != nil {
		return nil, err
	}
	return f, r.replaceTexts(f)
}

// refused takes in that a child refuses to go on with what an earlier attempt has left: settings are the same, so an
// input that no task makes was replaced since. Pictures are drawn anew then. A training may have taken days: that is
// somebody's decision.
func (r *runner) refused(err error) error {
	var c *child.Failure
	if r.from == 0 || !errors.As(err, &c) || c.Code != fault.ExitUsage {
		return err
	}
	if r.trains() {
		return fault.WithHint(err, "if inputs were replaced since it began, put them back, and it continues; "+
			"to start over, give the task another id")
	}
	if err := errors.Join(emptied(r.out), store.Forget(r.outputs, r.key, r.until())); err != nil {
		return store.Explain("start from scratch", r.key, err)
	}
	return &fault.Error{Op: "run task", Path: r.key,
		Err: fmt.Errorf("the inputs have changed since an earlier attempt: what it rendered is removed: %v",
			c),
		Hint: "run it again: it starts from scratch", Kind: fault.ErrTryAgain}
}

// unfinish has the work folder be one of work again. What was finished there, and is wanted anew or was changed since,
// is nothing to continue from: its texts are no longer as the command wrote them.
func (r *runner) unfinish() error {
	if _, err := os.Stat(r.finishedFile()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := emptied(r.out); err != nil {
		return err
	}
	return os.RemoveAll(r.finishedFile())
}

// isThis says whether what was finished is what this attempt would make: nobody has wanted it, or what it was made
// from, anew since.
func (r *runner) isThis(f *finished) bool {
	return f.Made.Generation == r.generation && f.Made.Inputs == r.given
}

// listed are the results in the work folder, which are brought to the disk if they have to.
func (r *runner) listed(dir *os.Root, synced bool) (list []finishedItem, err error) {
	names, err := store.LocalFiles(dir, r.isScratch)
	if err != nil {
		return nil, err
	}
	for _, name := range r.results(names) {
		info, err := os.Stat(r.placeless(name)) // atomicfile has brought it to the disk
		if errors.Is(err, fs.ErrNotExist) {
			if info, err = dir.Stat(name); err == nil && synced {
				err = store.SyncFile(dir, name)
			}
		}
		if err != nil {
			return nil, err
		}
		list = append(list, finishedItem{name, info.Size(), info.ModTime()})
	}
	return list, nil
}

// finishedBefore returns results that an earlier attempt left here, nil where there are none, or somebody has wanted
// them anew since.
func (r *runner) finishedBefore() *finished {
	f := &finished{}
	data, err := os.ReadFile(r.finishedFile())
	if err != nil || json.Unmarshal(data, f) != nil || f.Made.Hash != r.hash || !r.isThis(f) ||
		r.replaceTexts(f) != nil {
		return nil
	}
	dir, err := os.OpenRoot(r.out)
	if err != nil {
		return nil
	}
	defer dir.Close() // only read
	now, err := r.listed(dir, false)
	if err != nil || len(now) != len(f.Files) {
		return nil
	}
	for i, item := range now {
		if was := f.Files[i]; item.Name != was.Name || item.Size != was.Size || !item.Modified.Equal(was.Modified) {
			return nil
		}
	}
	r.say(fmt.Sprintf("attempt %d finished this task on this machine; committing its results", f.Made.Attempt), true)
	f.Made.Job, f.Made.JobHash, f.Made.Task, f.Made.Index, f.Made.Attempt = r.Job.Name, r.Job.Hash(), r.task.Name,
		r.task.Index, r.Attempt
	return f
}
