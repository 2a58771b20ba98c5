package task

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/spec"
)

// workdir is the local folder of a task.
type workdir struct {
	task *spec.Task
	dir  string // below Work
	out  string // in dir: what becomes the results
}

func (w *workdir) finishedFile() string { return filepath.Join(w.dir, finishedFile) }

// savesEvery is the time between two checkpoints of a training.
func (w *workdir) savesEvery() time.Duration { return min(w.task.Limits.CheckpointEvery, mostUnsaved) }

func (w *workdir) placeless(name string) string {
	return filepath.Join(w.dir, placelessName, filepath.FromSlash(name))
}

// Names of train's checkpoints in its folder.
const (
	checkpointFolder = "checkpoints"
	checkpointPrefix = "step_"
	checkpointSuffix = ".safetensors"
)

// trains reports whether the child writes checkpoints.
func (w *workdir) trains() bool { return w.task.Kind.Trains }

// resumes reports whether an attempt continues from the files of an earlier one.
func (w *workdir) resumes() bool {
	k := w.task.Kind
	return k.Trains || k.Draws || k.Stages
}

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

// newest is the step of the newest local checkpoint, or the number of pictures.
func (w *workdir) newest() int {
	if w.task.Kind.Draws {
		return w.pictures()
	}
	best := 0
	entries, err := os.ReadDir(filepath.Join(w.out, checkpointFolder))
	if err != nil || !w.trains() {
		return 0
	}
	for _, e := range entries {
		best = max(best, checkpointStep(checkpointFolder+"/"+e.Name()))
	}
	return best
}

// recordOfRender is the file of a render that describes its pictures.
const recordOfRender = "render.json"

// pictures counts what a render has written.
func (w *workdir) pictures() (n int) {
	entries, err := os.ReadDir(w.out)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if name := e.Name(); e.Type().IsRegular() && name != recordOfRender && !strings.HasPrefix(name, ".") &&
			!spec.Beside(name) {
			n++
		}
	}
	return n
}

// isScratch reports whether a file is not part of the results.
func (w *workdir) isScratch(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	scratch := w.task.Kind.Scratch
	return w.trains() && first == checkpointFolder || slices.Contains(scratch, first) || slices.Contains(scratch, name)
}

// trained reads the statistics of a finished training, empty without.
func (w *workdir) trained() (st trainStats) {
	data, err := os.ReadFile(filepath.Join(w.out, "stats.json"))
	if err != nil || !w.trains() || json.Unmarshal(data, &st) != nil {
		return trainStats{}
	}
	return st
}

// unit names the task's steps for people, "" where their rate means nothing.
func unit(k *spec.Kind) string {
	switch {
	case k.Trains:
		return "steps"
	case k.Draws:
		return "pictures"
	}
	return ""
}
