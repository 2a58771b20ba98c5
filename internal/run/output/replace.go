package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// NextFolder is where in OUT a run writes that replaces an earlier one, which stays as it is. Once the new run has a
// whole checkpoint or its results, Replace removes the files of the earlier one and moves those of the new one to OUT.
// Recover completes or undoes that after a kill. The folder lies in OUT because that may be a mount point, a link, or
// in a folder where nothing may be made, and because files of others in OUT stay where they are.
const NextFolder = ".vksplat-next"

// Files in that folder say how far Replace is.
const (
	oldFile    = "replaces.json" // lists the files of the earlier run, all of which are there; it is written first
	movingFile = "moving.json"   // its name once they are removed
)

// Stage begins the folder of a run that replaces old files in out. One that resumes the earlier run gets copies of the
// files to which it adds.
func Stage(out string, old []string, resumes bool) (err error) {
	next := filepath.Join(out, NextFolder)
	if err := os.Mkdir(next, 0o777); err != nil {
		return FolderError(out, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(FolderError(out, err), os.RemoveAll(next))
		}
	}()
	names := make([]string, len(old))
	for i, path := range old {
		if names[i], err = filepath.Rel(out, path); err != nil {
			return err
		}
	}
	if err := WriteJSON(filepath.Join(next, oldFile), names); err != nil || !resumes {
		return err
	}
	for _, name := range append(namesOf(func(f runFile) bool { return f.grows }), WrittenFile) {
		if path := filepath.Join(out, name); IsFile(path) {
			err = errors.Join(err, CopyWhole(path, filepath.Join(next, name)))
		}
	}
	return err
}

// RefuseUnreachable refuses folders of a run in out that files of out cannot be moved to, as those of another disk.
func RefuseUnreachable(out string) error {
	f, err := os.CreateTemp(out, ".probe*")
	if err := errors.Join(err, f.Close()); err != nil {
		return FolderError(out, err)
	}
	defer os.Remove(f.Name()) // it is empty
	dirs := slices.Concat(StepFolders(out, ModelFolder, -1), StepFolders(out, PictureFolder, -1))
	for _, name := range append(namesOf(func(runFile) bool { return true }), ModelFolder, PictureFolder) {
		dirs = append(dirs, filepath.Join(out, filepath.Dir(name)))
	}
	slices.Sort(dirs)
	for _, dir := range slices.DeleteFunc(slices.Compact(dirs), func(dir string) bool { return !IsFolder(dir) }) {
		there := filepath.Join(dir, filepath.Base(f.Name()))
		err := os.Rename(f.Name(), there)
		if err == nil {
			err = os.Rename(there, f.Name())
		}
		if moved, ok := errors.AsType[*os.LinkError](err); ok {
			return fault.Usagef("choose another folder, or put a plain folder in its place",
				"%s cannot be replaced: no file can be moved there from %s: %w", dir, out, moved.Err)
		}
	}
	return nil
}

// Replace puts the run in NextFolder in the place of the earlier one in out. After an error it may be called again.
func Replace(out string) error {
	steps, err := replaceSteps(out)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return FolderError(out, err)
		}
	}
	return nil
}

// replaceSteps lists the changes of the disk that are left to do. After any of them a process may be killed.
func replaceSteps(out string) (steps []func() error, err error) {
	next := filepath.Join(out, NextFolder)
	list, moving := filepath.Join(next, oldFile), filepath.Join(next, movingFile)
	data, err := os.ReadFile(list)
	switch {
	case err == nil:
		var old []string
		if err := json.Unmarshal(data, &old); err != nil {
			return nil, fault.Data("replace a run", list, "restore that file, or remove its folder", "%v", err)
		}
		steps = append(steps, func() error { return syncBelow(next) })
		for _, name := range old {
			if filepath.IsLocal(name) {
				steps = append(steps, func() error { return removeOld(filepath.Join(out, name)) })
			}
		}
		steps = append(steps, func() error { return os.Rename(list, moving) })
	case !errors.Is(err, fs.ErrNotExist):
		return nil, FolderError(out, err)
	}
	names, err := namesBelow(next)
	dirs := map[string]bool{}
	for _, name := range names {
		to := filepath.Join(out, name)
		dirs[filepath.Dir(to)] = true
		steps = append(steps, func() error {
			return errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.Rename(filepath.Join(next, name), to))
		})
	}
	for dir := range dirs {
		steps = append(steps, func() error { return atomicfile.SyncDir(dir) })
	}
	return append(steps, func() error { return os.RemoveAll(next) }), err
}

// removeOld removes a file of the earlier run, or a folder that is empty.
func removeOld(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) || IsFolder(path) { // which holds files of others
		return nil
	}
	return err
}

// namesBelow lists the files of a run in next, last the record of its start: see Current.
func namesBelow(next string) (names []string, err error) {
	err = filepath.WalkDir(next, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(next, path)
		cut, _ := fault.TempOf(e.Name())
		if cut == "" && name != oldFile && name != movingFile && name != begunName && !probeName.MatchString(name) {
			names = append(names, name)
		}
		return err
	})
	if IsFile(filepath.Join(next, begunName)) {
		names = append(names, begunName)
	}
	return names, err
}

// syncBelow brings what was written in a folder to the disk.
func syncBelow(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = atomicfile.SyncDir(path)
		}
		return err
	})
}

// Recover completes what a killed run began that was to replace the one in out, if it came to a checkpoint or to its
// end, and otherwise removes what it wrote. Note says which, "" if there was nothing.
func Recover(out string) (note string, err error) {
	next := nextIn(out)
	switch {
	case next == "":
		return "", nil
	case stands(next):
		return "the run in " + out + ", which was interrupted while it replaced the earlier one, has now replaced it",
			Replace(out)
	}
	if err := os.RemoveAll(next); err != nil {
		return "", FolderError(out, err)
	}
	return out + " is as it was before the last command, which ended before its first checkpoint", nil
}

// nextIn is NextFolder in out, "" if there is none. A link of that name is not ours.
func nextIn(out string) string {
	next := filepath.Join(out, NextFolder)
	if st, err := os.Lstat(next); err != nil || !st.IsDir() {
		return ""
	}
	return next
}

// Current is the folder of the run that Recover leaves in out: out, or NextFolder.
func Current(out string) string {
	if next := nextIn(out); next != "" && IsFile(filepath.Join(next, begunName)) && stands(next) {
		return next
	}
	return out
}

// NextText says what NextFolder in out is, "" if there is none.
func NextText(out string) string {
	next := nextIn(out)
	if next == "" {
		return ""
	}
	return fmt.Sprintf("%s holds a run that replaces this one once it has a checkpoint; if it was killed, the next %s "+
		"puts it in place, or removes it if it has none", cli.Quoted(next),
		fault.Command("train SCENE -m "+cli.Quoted(out)))
}

// stands reports whether the run in next takes the earlier one's place: it has a checkpoint, or its results, or has
// begun to.
func stands(next string) bool {
	if IsFile(filepath.Join(next, movingFile)) || IsFile(filepath.Join(next, StatsFile)) {
		return true
	}
	list, err := ListCheckpoints(filepath.Join(next, CheckpointFolder))
	return err == nil && slices.ContainsFunc(list, func(f CheckpointFile) bool {
		c, err := OpenWhole(f.Path)
		return err == nil && c.Close() == nil
	})
}
