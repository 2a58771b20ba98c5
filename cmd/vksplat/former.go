package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/pipeline"
)

// What a run leaves in OUT beside checkpoints: folders that are named after a step, and files about the whole run.
var (
	modelFolder   = filepath.Join("point_cloud", "iteration_")
	pictureFolder = filepath.Join("test", "ours_")
	runFiles      = []string{"results.json", "per_view.json", statsFile, reportFile, "input.ply", "cameras.json",
		"cfg_args", originFile, captureFile}
)

// Files in folders that are named after a step.
const (
	modelName     = "point_cloud.ply"
	pictureSuffix = ".png"
)

var digits = regexp.MustCompile(`^\d+$`)

// stepFolders returns the folders in out that prefix and a step above after name.
func stepFolders(out, prefix string, after int) (list []string) {
	entries, err := os.ReadDir(filepath.Join(out, filepath.Dir(prefix)))
	if err != nil {
		return nil // there is none, or nothing can be written there either
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), filepath.Base(prefix))
		step, err := strconv.Atoi(number)
		if ok && err == nil && digits.MatchString(number) && step > after && e.IsDir() {
			list = append(list, filepath.Join(out, filepath.Dir(prefix), e.Name()))
		}
	}
	return list
}

// formerModels returns the models that an earlier run left in out.
func formerModels(out string) []string { return modelsAbove(out, -1) }

// modelsAbove returns those of them that are of later steps.
func modelsAbove(out string, step int) []string {
	return slices.DeleteFunc(stepFolders(out, modelFolder, step), func(dir string) bool {
		return !isFile(filepath.Join(dir, modelName))
	})
}

// leftovers returns what of an earlier run is not this one's past and must not be mixed with it, but for checkpoints:
// files, and after them their folders. Viewers take the model of the highest step for the newest.
func (s *saver) leftovers() []string {
	return runLeftovers(s.r.out, s.after())
}

// after is the step of an earlier run in OUT that this one goes on with; -1: it does not.
func (s *saver) after() int {
	if s.ownPast() {
		return s.from.Header.Step
	}
	return -1
}

// runLeftovers lists what a run left in out above a step; -1: all of it.
func runLeftovers(out string, after int) (list []string) {
	for _, dir := range stepFolders(out, modelFolder, after) {
		list = append(list, filepath.Join(dir, modelName), dir)
	}
	if own := readWritten(out); own.known || holdsRun(out) {
		for _, dir := range stepFolders(out, pictureFolder, after) {
			list = append(list, picturesIn(dir, own)...)
		}
	}
	if after >= 0 {
		return list
	}
	return append(list, wholeRunFiles(out)...)
}

// holdsRun reports whether out has a model or a checkpoint of a run.
func holdsRun(out string) bool {
	list, err := listCheckpoints(filepath.Join(out, checkpointFolder))
	return err == nil && len(list) > 0 || len(formerModels(out)) > 0
}

// wholeRunFiles lists the files in out about a run as a whole.
func wholeRunFiles(out string) (list []string) {
	asked := filepath.Join(checkpointFolder, askedFile)
	for _, name := range slices.Concat(runFiles, []string{metricsFile, writtenFile, demoPicture, asked}) {
		list = append(list, filepath.Join(out, name))
	}
	events, err := eventFiles(filepath.Join(out, tensorboardFolder))
	if err != nil {
		return list // there are none
	}
	return append(list, events...)
}

// picturesIn lists the pictures in dir that a run wrote, and after them the folders that they are in. Builds that kept
// no list wrote all of them.
func picturesIn(dir string, own *written) (list []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && (e.IsDir() || strings.HasSuffix(path, pictureSuffix) && (!own.known || own.owns(path))) {
			list = append(list, path)
		}
		return nil // what cannot be read stays
	})
	slices.Reverse(list)
	return list
}

// ownPast reports whether the run goes on with a checkpoint of its own folder.
func (s *saver) ownPast() bool { return s.from != nil && inFolder(s.from.Path(), s.dir) }

// protect refuses to lose what an earlier run left.
func (s *saver) protect(list []checkpointFile) error {
	if s.o.overwrite {
		return nil
	}
	whole := 0
	for _, f := range slices.Backward(list) {
		c, err := pipeline.OpenCheckpoint(f.path)
		if err != nil {
			return fault.Usagef("move it away, replace it with --overwrite, or choose another folder",
				"%s is no whole checkpoint of this program", f.path)
		}
		h := c.Header
		if err := c.Close(); err != nil {
			return err
		}
		if whole++; whole == 1 && h.Step < h.Config.Iterations {
			return fault.Usagef("go on with --resume, start over with --overwrite, or choose another folder",
				"%s holds a run that stopped after step %d of %d", s.r.out, h.Step, h.Config.Iterations)
		}
	}
	hint := "choose another folder, or replace it with --overwrite"
	if whole > 0 {
		hint = "choose another folder, replace it with --overwrite, or train on with --resume and more --iterations"
	}
	return refuseFormer(s.r.out, whole, hint)
}

// refuseFormer is the error of a folder with so many checkpoints and any models.
func refuseFormer(out string, checkpoints int, hint string) error {
	text := formerText(out, checkpoints)
	if text == "" {
		return nil
	}
	return fault.Usagef(hint, "%s holds an earlier run: %s", out, text)
}

// formerText names the models in out and so many checkpoints, "" for none.
func formerText(out string, checkpoints int) string {
	return contentText(checkpoints, len(formerModels(out)))
}

// contentText names so many checkpoints and models, "" for none.
func contentText(checkpoints, models int) string {
	var parts []string
	if checkpoints > 0 {
		parts = append(parts, count(checkpoints, "checkpoint"))
	}
	if models > 0 {
		parts = append(parts, count(models, "model"))
	}
	return strings.Join(parts, " and ")
}

// startOver drops, with the first step or write of a run, the lines of metrics.jsonl that are not its past.
func (s *saver) startOver() {
	if s.r.rec != nil {
		s.r.rec.startOver()
	}
}
