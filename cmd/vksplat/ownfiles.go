package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"vksplat/internal/fault"
)

// refuseFolders refuses to begin where a folder has the name of a file that the run writes, or the other way round. It
// is not ours to remove, and the end of a long run is too late to find out.
func (r *trainRun) refuseFolders() error {
	paths := []string{filepath.Join(r.out, metricsFile), r.modelFile(r.config.Iterations), filepath.Join(r.saver.dir, askedFile)}
	for _, name := range runFiles {
		paths = append(paths, filepath.Join(r.out, name))
	}
	for _, dir := range stepFolders(r.out, modelFolder, -1) {
		paths = append(paths, filepath.Join(dir, modelName))
	}
	for _, at := range r.checkpoints.saveAt {
		paths = append(paths, r.modelFile(at))
	}
	// Checkpoints may come at any step.
	old, err := filepath.Glob(filepath.Join(escapeGlob(r.saver.dir), checkpointPrefix+"*"+checkpointSuffix))
	if err != nil {
		return err
	}
	return refuseTaken(append(paths, old...), "choose another folder with -m")
}

// runNames are the files in OUT, beside checkpoints and pictures, that the run may write.
func (r *trainRun) runNames() []string {
	paths := []string{filepath.Join(r.out, metricsFile), filepath.Join(r.saver.dir, askedFile), r.modelFile(r.config.Iterations)}
	for _, name := range runFiles {
		paths = append(paths, filepath.Join(r.out, name))
	}
	for _, at := range r.checkpoints.saveAt {
		paths = append(paths, r.modelFile(at))
	}
	return paths
}

// refuseForeign refuses to replace files in OUT that this program did not write. checkpoints are those in OUT: what
// builds left there that kept no list is taken for a run's.
func (s *saver) refuseForeign(checkpoints []checkpointFile) error {
	s.own = readWritten(s.r.out)
	former := len(checkpoints) > 0 || len(formerModels(s.r.out)) > 0
	if s.trusts = s.o.overwrite || former && !s.own.known; s.trusts {
		return nil
	}
	return refuseForeign(s.own.foreign(s.r.runNames()), s.remedy())
}

// remedy is what can be done about files in OUT besides moving them away.
func (s *saver) remedy() string {
	if s.o.off {
		return "or choose another folder with -m"
	}
	return "choose another folder with -m, or replace it with --overwrite"
}

// list begins the list of what this run writes.
func (s *saver) list() error {
	s.own = readWritten(s.r.out) // an earlier one may have been put aside
	s.own.By = byTrain
	if s.o.off {
		s.own.By = byDemo
	}
	return s.own.begin(s.r.runNames()...)
}

// unlist ends the list, where it was begun.
func (s *saver) unlist() error {
	if s.pending != nil && s.aside {
		s.settle()
	}
	if s.own == nil || !s.own.begun {
		return nil
	}
	return s.own.end()
}

// refuseForeignPictures is refuseFolders for pictures, whose names the capture gives.
func (r *trainRun) refuseForeignPictures() error {
	if r.dryRun {
		return nil
	}
	var paths, anew []string
	names := pictureNames(pick(r.capture.Cameras, r.test))
	for _, step := range append(slices.Clone(r.evalAt), r.config.Iterations) {
		pictures := pathsIn(r.picturesFolder(step), names)
		if paths = append(paths, pictures...); step > r.saver.after() {
			anew = append(anew, pictures...)
		}
	}
	if err := refuseTaken(paths, "choose another folder with -m"); err != nil {
		return err
	}
	if r.saver.trusts { // the user's pictures that this run replaces come back with the earlier run
		r.saver.left = append(r.saver.own.foreign(anew), r.saver.left...)
		return nil
	}
	return refuseForeign(r.saver.own.foreign(paths), r.saver.remedy())
}

// refuseTaken refuses places of files that are folders, or that are below a file. Remedy is what can be done besides moving those away.
func refuseTaken(paths []string, remedy string) error {
	for _, path := range paths {
		st, err := os.Lstat(path)
		switch {
		case err == nil && st.IsDir():
			return usagef("move it away, or "+remedy, "%s is a folder, a file of that name is to be written", path)
		case errors.Is(err, syscall.ENOTDIR):
			return usagef("move it away, or "+remedy, "%s cannot be written: one of the folders above is a file", path)
		}
	}
	return nil
}

var probeName = regexp.MustCompile(`^\.probe\d+$`)

// sweep removes temporary files of a process that was killed. The folder is locked: nobody writes there now.
func (r *trainRun) sweep() {
	removeTemps(r.out, func(base string, _ bool) bool {
		return slices.Contains(runFiles, base) || base == demoPicture || base == writtenFile
	})
	removeTemps(r.saver.dir, func(base string, _ bool) bool {
		return base == askedFile || strings.HasPrefix(base, checkpointPrefix) && strings.HasSuffix(base, checkpointSuffix)
	})
	for _, dir := range stepFolders(r.out, modelFolder, -1) {
		removeTemps(dir, func(base string, _ bool) bool { return base == modelName })
	}
	for _, top := range stepFolders(r.out, pictureFolder, -1) {
		_ = filepath.WalkDir(top, func(dir string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				removeTemps(dir, func(base string, cut bool) bool { return cut || strings.HasSuffix(base, pictureSuffix) })
			}
			return nil // what cannot be read stays
		})
	}
}

// removeTemps removes from dir what writes left that were cut short, of files whose name, or the first bytes of it, is ours, and probes of the disk.
func removeTemps(dir string, ours func(base string, cut bool) bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is none, or nothing can be removed either
	}
	for _, e := range entries {
		base, cut := fault.TempOf(e.Name())
		if e.Type().IsRegular() && (base != "" && ours(base, cut) || probeName.MatchString(e.Name())) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it takes room and harms nobody
		}
	}
}

// escapeGlob makes a path mean itself in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
