package train

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
)

// refuseFolders refuses to begin where a folder has the name of a file that the run writes, or the other way round. It
// is not ours to remove, and the end of a long run is too late to find out.
func (r *Run) refuseFolders() error {
	paths := r.runNames()
	for _, dir := range output.StepFolders(r.Out, output.ModelFolder, -1) {
		paths = append(paths, filepath.Join(dir, output.ModelName))
	}
	// Checkpoints may come at any step.
	old, err := filepath.Glob(filepath.Join(output.EscapeGlob(r.saver.dir),
		output.CheckpointPrefix+"*"+output.CheckpointSuffix))
	if err != nil {
		return err
	}
	return output.RefuseTaken(append(paths, old...), "choose another folder")
}

// runNames are the files in OUT, beside checkpoints and pictures, that the run may write.
func (r *Run) runNames() []string {
	paths := append(output.RunPaths(r.Out), r.modelFile(r.Config.Iterations))
	for _, at := range r.Checkpoints.SaveAt {
		paths = append(paths, r.modelFile(at))
	}
	return paths
}

// refuseForeign refuses to replace files in OUT that this program did not write. Beside checkpoints, what builds left
// there that kept no list is taken for a run's.
func (s *saver) refuseForeign() error {
	s.own = output.ReadWritten(s.r.Out)
	if s.trusts = s.o.Overwrite || !s.own.Known && output.HoldsRun(s.r.Out); s.trusts {
		return nil
	}
	return output.RefuseForeign(s.own.Foreign(s.r.runNames()), s.remedy())
}

// remedy is what can be done about files in OUT besides moving them away.
func (s *saver) remedy() string {
	if s.o.Demo { // it has no setting overwrite
		return "or choose another folder"
	}
	return "choose another folder, or replace it with " + fault.Setting("overwrite")
}

// list begins the list of what this run writes.
func (s *saver) list() error {
	s.own = output.ReadWritten(s.r.Out)
	if s.staged { // the earlier run's stays until this one replaces it
		s.own = output.ReadList(s.r.Out, filepath.Join(output.NextFolder, output.WrittenFile))
	}
	switch {
	case s.o.Demo:
		s.own.By = output.ByDemo
	case s.o.Resume == "" || s.own.By == "": // who began a run that goes on stays
		s.own.By = output.ByTrain
	}
	return s.own.Begin(s.r.runNames()...)
}

// unlist ends the list, where it was begun.
func (s *saver) unlist() error {
	if s.pending != nil && s.staged {
		s.settle()
	}
	if s.staged || s.own == nil || !s.own.Begun {
		return nil
	}
	return s.own.End()
}

// refuseForeignPictures is refuseFolders for pictures, whose names the capture gives.
func (r *Run) refuseForeignPictures() error {
	if r.DryRun {
		return nil
	}
	var paths, anew []string
	names := captured.PictureNames(captured.Pick(r.Capture.Cameras, r.Test))
	for _, step := range append(slices.Clone(r.EvalAt), r.Config.Iterations) {
		pictures := captured.PathsIn(r.picturesFolder(step), names)
		if paths = append(paths, pictures...); step > r.saver.after() {
			anew = append(anew, pictures...)
		}
	}
	if err := output.RefuseTaken(paths, "choose another folder"); err != nil {
		return err
	}
	if r.saver.trusts { // those of the user stay as long as the earlier run
		r.saver.old = append(r.saver.own.Foreign(anew), r.saver.old...)
		return nil
	}
	return output.RefuseForeign(r.saver.own.Foreign(paths), r.saver.remedy())
}

// sweep removes temporary files of a process that was killed. The folder is locked: nobody writes there now.
func (r *Run) sweep() {
	output.RemoveTemps(r.Out, func(base string, _ bool) bool {
		return slices.Contains(output.RunFiles, base) || base == output.DemoPicture || base == output.WrittenFile
	})
	output.RemoveTemps(r.saver.dir, func(base string, _ bool) bool {
		return base == output.AskedFile || base == output.BegunFile ||
			strings.HasPrefix(base, output.CheckpointPrefix) && strings.HasSuffix(base, output.CheckpointSuffix)
	})
	for _, dir := range output.StepFolders(r.Out, output.ModelFolder, -1) {
		output.RemoveTemps(dir, func(base string, _ bool) bool { return base == output.ModelName })
	}
	for _, top := range output.StepFolders(r.Out, output.PictureFolder, -1) {
		_ = filepath.WalkDir(top, func(dir string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				output.RemoveTemps(dir,
					func(base string, cut bool) bool { return cut || strings.HasSuffix(base, output.PictureSuffix) })
			}
			return nil // what cannot be read stays
		})
	}
}
