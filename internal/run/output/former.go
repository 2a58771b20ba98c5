package output

import (
	"cmp"
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

// Folders that a run leaves in OUT, before the number of a step.
var (
	ModelFolder   = filepath.Join("point_cloud", "iteration_")
	PictureFolder = filepath.Join("test", "ours_")
)

// runFiles are the files about the whole run that it leaves in OUT. Refusing, replacing, copying and sweeping go by
// this table.
var runFiles = []runFile{
	{name: "results.json", grows: true, shared: true}, {name: "per_view.json", grows: true, shared: true},
	{name: StatsFile}, {name: ReportFile}, {name: "input.ply"}, {name: "cameras.json"}, {name: "cfg_args"},
	{name: OriginFile}, {name: CaptureFile}, {name: askedName}, {name: begunName}, {name: MetricsFile, grows: true},
	{name: filepath.Join("sparse", "0", "cameras.bin")}, {name: filepath.Join("sparse", "0", "images.bin")},
	{name: filepath.Join("sparse", "0", "points3D.bin")},
	{name: filepath.Join(CheckpointFolder, "cameras", "cameras.bin")},
	{name: filepath.Join(CheckpointFolder, "cameras", "images.bin")},
	{name: filepath.Join(CheckpointFolder, "cameras", "points3D.bin")},
	{name: filepath.Join(TensorboardFolder, TensorboardPrefix+"*"+TensorboardSuffix)},
}

type runFile struct {
	name   string // has a star where names hold the time, so that no file of the user is in their way
	grows  bool   // a resumed run adds to it
	shared bool   // other commands add to it, too
}

// namesOf lists the names of some files of a run.
func namesOf(which func(f runFile) bool) (names []string) {
	for _, f := range runFiles {
		if which(f) {
			names = append(names, f.name)
		}
	}
	return names
}

// ScoreFiles are those that commands add to, and do not replace.
var ScoreFiles = namesOf(func(f runFile) bool { return f.shared })

// CamerasIn lists the files in out with the cameras that a run used in place of its capture's own, and after them the
// folders that they are in.
func CamerasIn(out string) []string {
	files := namesOf(func(f runFile) bool { return strings.HasPrefix(f.name, "sparse") })
	return PathsIn(out, append(files, cameraFolders...))
}

// cameraFolders are those of the cameras that a run used or began with, inner ones first.
var cameraFolders = []string{filepath.Join("sparse", "0"), "sparse", filepath.Join(CheckpointFolder, "cameras")}

// RunPaths lists the files in out that a run writes, and that may be in its way.
func RunPaths(out string) []string {
	return PathsIn(out, namesOf(func(f runFile) bool { return !strings.Contains(f.name, "*") }))
}

// Files in folders that are named after a step.
const (
	ModelName     = "point_cloud.ply"
	PictureSuffix = ".png"
)

var Digits = regexp.MustCompile(`^\d+$`)

// StepFolders returns the folders in out that prefix and a step above after name, in the order of steps.
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
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return list
}

// FormerModels returns the models that an earlier run left in out, in the order of steps.
func FormerModels(out string) []string { return ModelsAbove(out, -1) }

// ModelsAbove returns those of them that are of later steps.
func ModelsAbove(out string, step int) (files []string) {
	for _, dir := range StepFolders(out, ModelFolder, step) {
		if file := filepath.Join(dir, ModelName); IsFile(file) {
			files = append(files, file)
		}
	}
	return files
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
	for _, f := range runFiles {
		there, _ := filepath.Glob(filepath.Join(EscapeGlob(out), f.name)) // the pattern is sound
		list = append(list, there...)
	}
	list = append(list, PathsIn(out, cameraFolders)...)
	if picture := filepath.Join(out, DemoPicture); own.Owns(picture) {
		list = append(list, picture)
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
