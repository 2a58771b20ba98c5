package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/store"
	"vksplat/internal/atomicfile"
	"vksplat/internal/child"
	"vksplat/internal/fault"
	"vksplat/scene/results"
)

// finishedFile marks results in outName as complete and on the disk, once the texts of placelessName are moved there.
// If this attempt cannot commit them, the next one here does. It is removed before anything there changes.
const finishedFile = "finished.json"

// committer commits results and resumes checkpoints.
type committer struct{ *attempt }

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

func (f *finished) names() (names []string) {
	for _, item := range f.Files {
		names = append(names, item.Name)
	}
	return names
}

// finish resumes, and works until the results are complete.
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
	r.freeDevice() // the disk may take long
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

// refused handles a child that refuses to resume: as settings are the same, an input was replaced. Pictures are drawn
// again. A training may have taken days: people decide.
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
		return store.Explain("start over", r.key, err)
	}
	return &fault.Error{Op: "run task", Path: r.key,
		Err:  fmt.Errorf("inputs have changed, the pictures of an earlier attempt are removed: %v", c),
		Hint: "run it again: it starts over", Kind: fault.ErrTryAgain}
}

// listed lists the results in the work folder, and with synced brings them to the disk.
func (c *committer) listed(dir *os.Root, synced bool) (list []finishedItem, err error) {
	names, err := store.LocalFiles(dir, c.isScratch)
	if err != nil {
		return nil, err
	}
	for _, name := range c.results(names) {
		info, err := os.Stat(c.placeless(name)) // atomicfile has synced it
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

// finishedBefore returns current results that an earlier attempt finished here, nil without any.
func (c *committer) finishedBefore() *finished {
	f := &finished{}
	data, err := os.ReadFile(c.finishedFile())
	if err != nil || json.Unmarshal(data, f) != nil || f.Made.Hash != c.hash ||
		f.Made.Generation != c.generation || f.Made.Inputs != c.given || c.replaceTexts(f) != nil {
		return nil
	}
	dir, err := os.OpenRoot(c.out)
	if err != nil {
		return nil
	}
	defer dir.Close() // only read
	now, err := c.listed(dir, false)
	if err != nil || !slices.EqualFunc(now, f.Files, func(a, b finishedItem) bool {
		return a.Name == b.Name && a.Size == b.Size && a.Modified.Equal(b.Modified)
	}) {
		return nil
	}
	c.say(fmt.Sprintf("attempt %d finished this task on this machine; committing its results", f.Made.Attempt), true)
	f.Made.Job, f.Made.JobHash, f.Made.Task, f.Made.Index, f.Made.Attempt = c.Job.Name, c.Job.Hash(), c.task.Name,
		c.task.Index, c.Attempt
	return f
}

// Folders of a training with one subfolder for each step: models, and pictures of held-out photos.
const (
	modelFolder   = "point_cloud/iteration_"
	pictureFolder = "test/ours_"
)

// stepOf is the step of a training's file, by its name below the results; -1 for other files.
func stepOf(name string) int {
	for _, folder := range []string{modelFolder, pictureFolder} {
		rest, found := strings.CutPrefix(name, folder)
		digits, _, below := strings.Cut(rest, "/")
		if step, err := strconv.Atoi(digits); found && below && err == nil {
			return step
		}
	}
	return -1
}

// lastStep is the highest step of files, -1 without any.
func lastStep(names []string) int {
	last := -1
	for _, name := range names {
		last = max(last, stepOf(name))
	}
	return last
}

// results filters files. An interrupted training leaves a model and scores of that step: they are dropped, as results
// must not depend on interruptions. Scores at requested steps stay.
func (c *committer) results(names []string) []string {
	if !c.trains() {
		return names
	}
	last, asked := lastStep(names), c.trained().EvalAt
	return slices.DeleteFunc(names, func(name string) bool {
		step := stepOf(name)
		return step >= 0 && step < last && !(strings.HasPrefix(name, pictureFolder) && slices.Contains(asked, step))
	})
}

// forgetStops removes the scores of interruptions from a training's files of scores.
func (c *committer) forgetStops(dir *os.Root) error {
	if !c.trains() {
		return nil
	}
	names, err := store.LocalFiles(dir, c.isScratch)
	if err != nil {
		return err
	}
	last, asked := lastStep(names), c.trained().EvalAt
	return results.KeepSteps(c.out, func(step int) bool { return step >= last || slices.Contains(asked, step) })
}

// trainStats is a part of stats.json.
type trainStats struct {
	EvalAt []int `json:"eval_at"`
	Run    struct {
		Deviations []struct {
			Step   int    `json:"step"`
			Reason string `json:"reason"`
		} `json:"deviations"`
	} `json:"run"`
}

// readStats notes events that may have changed the bytes of a training.
func (c *committer) readStats() {
	for _, d := range c.trained().Run.Deviations {
		c.state.Notes = append(c.state.Notes, fmt.Sprintf("from step %d on: %s", d.Step, d.Reason))
	}
}
