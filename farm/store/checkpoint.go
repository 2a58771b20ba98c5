package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/internal/fault"
)

// A checkpoint is a set of files from which another machine goes on: <task>/ckpt/a<attempt>/step-<step>.json lists
// them, <task>/ckpt/a<attempt>/<sha256> has each content once, so that pictures that are done go up one time only in an
// attempt. Attempts share nothing: one that was given up and wakes late cannot remove what a later one has, not even
// between a look and what it does then.

// keptCheckpoints is how many of a hash stay: the newest may turn out to be damaged.
const keptCheckpoints = 2

// AllAttempts as a number of an attempt means whatever number there is.
const AllAttempts = math.MaxInt

// Uploads uploads the checkpoints of one run of a task.
type Uploads struct {
	Root  Root
	Task  string
	Dir   *os.Root // the work folder
	Until int      // checkpoints of attempts above this one are another's: they are not removed

	sent map[string]sent // by name
}

// sent is a file as it was when it went up.
type sent struct {
	size     int64
	modified time.Time
	file     File
}

// checkpoint is one of a task, as the name of its list says.
type checkpoint struct {
	key           string
	step, attempt int
}

func attemptKey(task string, attempt int) string {
	return path.Join(task, ckptFolder, fmt.Sprintf("a%05d", attempt))
}

func checkpointKey(task string, step, attempt int) string {
	return path.Join(attemptKey(task, attempt), fmt.Sprintf("step-%09d.json", step))
}

func contentKey(task string, attempt int, sum string) string {
	return path.Join(attemptKey(task, attempt), sum)
}

// Save uploads files as the checkpoint of a step. Where one is there no more, nothing is saved, and the error is
// fs.ErrNotExist. Older ones than the newest two of the same hash are removed.
func (u *Uploads) Save(ctx context.Context, names []string, made Made) error {
	if u.sent == nil {
		u.sent = map[string]sent{}
	}
	m := &Manifest{Version: manifestVersion, Made: made, Files: []File{}}
	for _, name := range names {
		file, err := u.send(ctx, name, made.Attempt)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, file)
	}
	key := checkpointKey(u.Task, made.Step, made.Attempt)
	if err := putJSON(u.Root, key, m); err != nil {
		return err
	}
	return u.prune(key, &made)
}

// send uploads a file, unless its content is there.
func (u *Uploads) send(ctx context.Context, name string, attempt int) (File, error) {
	info, err := u.Dir.Stat(name)
	if err != nil {
		return File{}, err
	}
	if s, known := u.sent[name]; known && s.size == info.Size() && s.modified.Equal(info.ModTime()) {
		return s.file, nil
	}
	sum, err := ReadLocal(ctx, u.Dir, name, math.MaxInt64, io.Discard) // as much as it has now: it may grow
	if err != nil {
		return File{}, err
	}
	key := contentKey(u.Task, attempt, sum.SHA256)
	there, err := u.Root.Stat(key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return File{}, err
	}
	if err != nil || there.Size != sum.Size {
		err := u.Root.Put(key, func(w io.Writer) error {
			sent, err := ReadLocal(ctx, u.Dir, name, sum.Size, w)
			if err == nil && sent.SHA256 != sum.SHA256 {
				err = fmt.Errorf("%s changed while it was uploaded", name)
			}
			return err
		})
		if err != nil {
			return File{}, err
		}
	}
	u.sent[name] = sent{info.Size(), info.ModTime(), sum}
	return sum, nil
}

// prune removes the checkpoints of a hash that are older than the newest ones of it, or from which nobody goes on any
// more, but never that under written, nor those of later attempts, and the contents that only these had. What other
// settings made of a task of this name counts for itself, however far it came.
func (u *Uploads) prune(written string, made *Made) error {
	list, err := checkpoints(u.Root, u.Task)
	if err != nil || len(list) <= keptCheckpoints {
		return err
	}
	newer, kept := 0, map[string]bool{}
	old := map[checkpoint]*Manifest{}
	for _, c := range slices.Backward(list) {
		m, err := readManifest(u.Root, c.key)
		switch {
		case errors.Is(err, fs.ErrNotExist): // another attempt was faster
			continue
		case errors.Is(err, ErrDamaged): // nobody goes on from it; Forget removes what it had
			if c.attempt <= u.Until {
				old[c] = &Manifest{}
			}
			continue
		case err != nil:
			return err
		}
		useful := made.goesOnFrom(&m.Made)
		if useful {
			newer++
		}
		if m.Hash == made.Hash && (!useful || newer > keptCheckpoints) && c.key != written && c.attempt <= u.Until {
			old[c] = m
			continue
		}
		for _, f := range m.Files {
			kept[contentKey(u.Task, c.attempt, f.SHA256)] = true
		}
	}
	for c, m := range old {
		if err := u.remove(c, m, kept); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a checkpoint, and of its contents those that are not kept.
func (u *Uploads) remove(c checkpoint, m *Manifest, kept map[string]bool) error {
	if err := u.Root.Delete(c.key); err != nil {
		return err
	}
	for _, f := range m.Files {
		key := contentKey(u.Task, c.attempt, f.SHA256)
		if kept[key] {
			continue
		}
		if err := u.Root.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints lists the checkpoints of a task, the newest last.
func checkpoints(r Root, task string) (list []checkpoint, err error) {
	entries, _, err := r.List(path.Join(task, ckptFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, isList := strings.CutSuffix(path.Base(e.Key), ".json")
		step, stepErr := strconv.Atoi(strings.TrimPrefix(name, "step-"))
		attempt, attemptErr := attemptOf(path.Dir(e.Key))
		if isList && stepErr == nil && attemptErr == nil {
			list = append(list, checkpoint{e.Key, step, attempt})
		}
	}
	slices.SortFunc(list, func(a, b checkpoint) int { return cmp.Or(a.step-b.step, a.attempt-b.attempt) })
	return list, err
}

// attemptOf is the number of the attempt whose folder of checkpoints this is.
func attemptOf(folder string) (int, error) {
	return strconv.Atoi(strings.TrimPrefix(path.Base(folder), "a"))
}

// errMoving is of checkpoints that another attempt removes, as it makes newer ones, faster than they can be read.
var errMoving = error(&fault.Error{Op: "fetch checkpoint",
	Err: errors.New("another attempt replaces the checkpoints as they are read"), Hint: "run it again",
	Kind: fault.ErrTryAgain})

// Fetch brings the newest checkpoint from which an attempt may go on, that verifies and is of a step above after, into
// the local folder dir, and returns its manifest; nil where there is none.
func Fetch(ctx context.Context, r Root, task string, dir *os.Root, made Made, after int) (*Manifest, error) {
	for range tries {
		m, err := fetchNewest(ctx, r, task, dir, &made, after)
		if !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	return nil, errMoving
}

// fetchNewest is Fetch, once. fs.ErrNotExist is of one that was removed meanwhile: there are newer ones.
func fetchNewest(ctx context.Context, r Root, task string, dir *os.Root, made *Made, after int) (*Manifest, error) {
	list, err := checkpoints(r, task)
	if err != nil {
		return nil, err
	}
	for _, c := range slices.Backward(list) {
		m, err := readManifest(r, c.key)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		if err != nil || !made.goesOnFrom(&m.Made) {
			continue // damaged, or made of something else: an older one may do
		}
		if m.Step <= after {
			return nil, nil
		}
		err = fetch(ctx, r, task, dir, m, c.attempt)
		if err == nil {
			return m, nil
		}
		if !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		if _, err := r.Stat(c.key); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// fetch copies the files of a checkpoint.
func fetch(ctx context.Context, r Root, task string, dir *os.Root, m *Manifest, attempt int) error {
	for _, f := range m.Files {
		if err := toLocal(ctx, r, contentKey(task, attempt, f.SHA256), f, dir); err != nil {
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
	err = CopyFile(ctx, r, key, want, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, dir.Remove(want.Name))
	}
	return nil
}

// LastCheckpoint is the highest attempt at a task that has left something of a checkpoint.
func LastCheckpoint(r Root, task string) (last int, err error) {
	folders, _, err := attempts(r, task)
	for n := range folders {
		last = max(last, n)
	}
	return last, err
}

// attempts lists the folders of checkpoints of a task, by attempt, and says whether files of others are beside them.
func attempts(r Root, task string) (folders map[int]string, others bool, err error) {
	top := path.Join(task, ckptFolder)
	folders = map[int]string{}
	list, err := r.Names(top)
	for _, folder := range list {
		if n, err := attemptOf(folder); err == nil {
			folders[n] = path.Join(top, folder)
		} else {
			others = true
		}
	}
	return folders, others, err
}

// Forget removes the checkpoints of a task, which is done, that attempts up to a number made, and what those left that
// were killed as they put files into a folder, and ends uploads that they began. AllAttempts also ends uploads of
// attempts that have left nothing else.
func Forget(r Root, task string, until int) error {
	if until == AllAttempts {
		all := path.Join(task, ckptFolder)
		err := errors.Join(forgetAll(r, task, all), forgetStages(r, task, until))
		abort(r, all)
		return err
	}
	folders, _, err := attempts(r, task)
	if err != nil {
		return err
	}
	var gone []string
	for n, folder := range folders {
		if n > until {
			continue
		}
		if err := r.Delete(folder); err != nil {
			return err
		}
		gone = append(gone, folder)
	}
	abort(r, gone...)
	return forgetStages(r, task, until)
}

// forgetAll removes the checkpoints of all attempts, and nothing that others put beside them.
func forgetAll(r Root, task, all string) error {
	folders, others, err := attempts(r, task)
	if err != nil {
		return err
	}
	if !others {
		return r.Delete(all)
	}
	for _, folder := range folders {
		err = errors.Join(err, r.Delete(folder))
	}
	return err
}

// stage is where results of a task are uploaded before Publish.
func stage(r Root, task, name string) string {
	if r.InPlace() != nil {
		return path.Join(OutOf(task), name)
	}
	return path.Join(task, tempFolder, name)
}

// forgetStages removes the stages of killed attempts up to a number. Among results, gc does.
func forgetStages(r Root, task string, until int) error {
	if r.InPlace() != nil {
		return nil
	}
	place := path.Join(task, tempFolder)
	names, err := r.Names(place)
	if err != nil {
		return err
	}
	for _, stage := range names {
		n, isStage := stageOf(stage)
		if !isStage || n > until {
			continue // what is out of date or damaged has another name
		}
		if err := r.Delete(path.Join(place, stage)); err != nil {
			return err
		}
	}
	return nil
}
