package output

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// What a run leaves in OUT beside checkpoints: folders that are named after a step, and files about the whole run.
var (
	ModelFolder   = filepath.Join("point_cloud", "iteration_")
	PictureFolder = filepath.Join("test", "ours_")
	RunFiles      = []string{"results.json", "per_view.json", StatsFile, ReportFile, "input.ply", "cameras.json",
		"cfg_args", OriginFile, CaptureFile}
)

func RunPaths(out string) []string {
	return PathsIn(out, append(slices.Clone(RunFiles), MetricsFile, askedName, begunName))
}

// Files in folders that are named after a step.
const (
	ModelName     = "point_cloud.ply"
	PictureSuffix = ".png"
)

var Digits = regexp.MustCompile(`^\d+$`)

// StepFolders returns the folders in out that prefix and a step above after name.
func StepFolders(out, prefix string, after int) (list []string) {
	entries, err := os.ReadDir(filepath.Join(out, filepath.Dir(prefix)))
	if err != nil {
		return nil // there is none, or nothing can be written there either
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), filepath.Base(prefix))
		step, err := strconv.Atoi(number)
		if ok && err == nil && Digits.MatchString(number) && step > after && e.IsDir() {
			list = append(list, filepath.Join(out, filepath.Dir(prefix), e.Name()))
		}
	}
	return list
}

// FormerModels returns the models that an earlier run left in out.
func FormerModels(out string) []string { return ModelsAbove(out, -1) }

// ModelsAbove returns those of them that are of later steps.
func ModelsAbove(out string, step int) []string {
	return slices.DeleteFunc(StepFolders(out, ModelFolder, step), func(dir string) bool {
		return !IsFile(filepath.Join(dir, ModelName))
	})
}

// Replaced lists what a run that begins after a step of the earlier one in out replaces of that, and after files the
// folders that they are in. after -1 is all of it.
func Replaced(out string, after int) (list []string) {
	if checkpoints, err := ListCheckpoints(filepath.Join(out, CheckpointFolder)); err == nil {
		for _, f := range checkpoints {
			if f.Step > after {
				list = append(list, f.Path)
			}
		}
	}
	for _, dir := range StepFolders(out, ModelFolder, after) {
		list = append(list, filepath.Join(dir, ModelName), dir)
	}
	own := ReadWritten(out)
	if own.Known || HoldsRun(out) {
		for _, dir := range StepFolders(out, PictureFolder, after) {
			list = append(list, picturesIn(dir, own)...)
		}
	}
	if after >= 0 {
		return list
	}
	list = append(list, RunPaths(out)...)
	if picture := filepath.Join(out, DemoPicture); own.Owns(picture) {
		list = append(list, picture)
	}
	if events, err := eventFiles(filepath.Join(out, TensorboardFolder)); err == nil { // else there are none
		list = append(list, events...)
	}
	return list
}

func HoldsRun(out string) bool {
	list, err := ListCheckpoints(filepath.Join(out, CheckpointFolder))
	return err == nil && len(list) > 0 || len(FormerModels(out)) > 0
}

// picturesIn lists the pictures in dir that a run wrote, and after them the folders that they are in. Builds that kept
// no list wrote all of them.
func picturesIn(dir string, own *Written) (list []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && (e.IsDir() || strings.HasSuffix(path, PictureSuffix) && (!own.Known || own.Owns(path))) {
			list = append(list, path)
		}
		return nil // what cannot be read stays
	})
	slices.Reverse(list)
	return list
}

// RefuseFormer is the error of a folder with checkpoints and models of an earlier run.
func RefuseFormer(out string, checkpoints int, hint string) error {
	text := ContentText(checkpoints, len(FormerModels(out)))
	if text == "" {
		return nil
	}
	return fault.Usagef(hint, "%s holds an earlier run: %s", out, text)
}

// ContentText words a number of checkpoints and models, "" for none.
func ContentText(checkpoints, models int) string {
	var parts []string
	if checkpoints > 0 {
		parts = append(parts, cli.Count(checkpoints, "checkpoint"))
	}
	if models > 0 {
		parts = append(parts, cli.Count(models, "model"))
	}
	return strings.Join(parts, " and ")
}
