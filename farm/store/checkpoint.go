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

// A checkpoint is a set of files to resume from: <task>/ckpt/a<attempt>/step-<step>.json lists them,
// <task>/ckpt/a<attempt>/<sha256> has each content, which an attempt uploads once. Attempts share no files, so one that
// was given up and wakes late cannot remove those of a later one.

// keptCheckpoints is how many of a hash are kept: the newest may be damaged.
const keptCheckpoints = 2

// AllAttempts stands for the highest attempt.
const AllAttempts = math.MaxInt

// Uploads uploads the checkpoints of one run of a task.
type Uploads struct {
	Root  Root
	Task  string
	Dir   *os.Root // the work folder
	Until int      // the highest attempt whose checkpoints may be removed

	sent map[string]sent // by name
}

// sent is an uploaded file, as it was then.
type sent struct {
	size     int64
	modified time.Time
	file     File
}

// checkpoint is a checkpoint by the name of its list.
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

// Save uploads files as the checkpoint of a step, or nothing if one is missing: fs.ErrNotExist. It removes all but the
// newest two of the same hash.
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

// send uploads a file, unless the store has its content.
func (u *Uploads) send(ctx context.Context, name string, attempt int) (File, error) {
	info, err := u.Dir.Stat(name)
	if err != nil {
		return File{}, err
	}
	if s, known := u.sent[name]; known && s.size == info.Size() && s.modified.Equal(info.ModTime()) {
		return s.file, nil
	}
	sum, err := ReadLocal(ctx, u.Dir, name, math.MaxInt64, io.Discard) // it may grow
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

// prune removes old or unusable checkpoints of a hash, and the contents that only they had: never written, nor those of
// later attempts. Checkpoints of other settings are counted apart.
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
		case errors.Is(err, fs.ErrNotExist): // another attempt removed it
			continue
		case errors.Is(err, ErrDamaged): // unusable; Forget removes its contents
			if c.attempt <= u.Until {
				old[c] = &Manifest{}
			}
			continue
		case err != nil:
			return err
		}
		useful := made.resumes(&m.Made)
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
		gone := []string{c.key} // first: its contents are of no use without it
		for _, f := range m.Files {
			if key := contentKey(u.Task, c.attempt, f.SHA256); !kept[key] {
				gone = append(gone, key)
			}
		}
		for _, key := range gone {
			if err := u.Root.Delete(key); err != nil {
				return err
			}
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

// attemptOf is the attempt of a folder of checkpoints.
func attemptOf(folder string) (int, error) {
	return strconv.Atoi(strings.TrimPrefix(path.Base(folder), "a"))
}

// errMoving is the error of checkpoints that another attempt replaces faster than they can be read.
var errMoving = error(&fault.Error{Op: "fetch checkpoint",
	Err: errors.New("another attempt replaces the checkpoints as they are read"), Hint: "run it again",
	Kind: fault.ErrTryAgain})

// Fetch copies the newest intact checkpoint that an attempt may resume, of a step above after, to a local folder, and
// returns its manifest, nil without any.
func Fetch(ctx context.Context, r Root, task string, dir *os.Root, made Made, after int) (*Manifest, error) {
	for range tries {
		m, err := fetchNewest(ctx, r, task, dir, &made, after)
		if !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	return nil, errMoving
}

// fetchNewest is one try of Fetch. It fails with fs.ErrNotExist if a newer checkpoint replaces the one it reads.
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
		if err != nil || !made.resumes(&m.Made) {
			continue // an older one may do
		}
		if m.Step <= after {
			return nil, nil
		}
		for _, f := range m.Files {
			if err = toLocal(ctx, r, contentKey(task, c.attempt, f.SHA256), f, dir); err != nil {
				break
			}
		}
		switch {
		case err == nil:
			return m, nil
		case !errors.Is(err, ErrDamaged):
			return nil, err
		}
		if _, err := r.Stat(c.key); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// toLocal copies a file to dir under its name, and checks it.
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

// LastCheckpoint is the highest attempt at a task with files of a checkpoint.
func LastCheckpoint(r Root, task string) (last int, err error) {
	folders, _, err := attempts(r, task)
	for n := range folders {
		last = max(last, n)
	}
	return last, err
}

// attempts lists the folders of checkpoints of a task by attempt. Others reports foreign files among them.
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

// Forget removes what attempts up to a number left of checkpoints and stages, and ends their uploads. AllAttempts also
// ends uploads of attempts that left nothing else. Foreign files beside the checkpoints stay.
func Forget(r Root, task string, until int) error {
	folders, others, err := attempts(r, task)
	if err != nil {
		return err
	}
	var old []string
	for n, folder := range folders {
		if n <= until {
			old = append(old, folder)
		}
	}
	all := path.Join(task, ckptFolder)
	if until == AllAttempts && !others {
		old = []string{all} // with its hidden files
	}
	for _, folder := range old {
		err = errors.Join(err, r.Delete(folder))
	}
	if until == AllAttempts {
		old = []string{all}
	}
	r.Abort(old...)
	return errors.Join(err, forgetStages(r, task, until))
}

// stage is where results of a task are uploaded before Publish.
func stage(r Root, task, name string) string {
	if r.InPlace() {
		return path.Join(OutOf(task), name)
	}
	return path.Join(task, tempFolder, name)
}

// forgetStages removes the stages of killed attempts up to a number. Among results, gc does.
func forgetStages(r Root, task string, until int) error {
	if r.InPlace() {
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
