package output

import (
	"os"
	"path/filepath"

	"vksplat/internal/fault"
)

// RefusePlace refuses to fill a folder that is probably a mistake: the user's working folder or one above it, the home
// folder, or a capture, unless it is empty or holds one of the command's own files. A setting names it.
func RefusePlace(dir, setting string, own ...string) error {
	if dir == "-" {
		return fault.Usagef("name a folder", "%s: standard output is not a folder", fault.Named(setting))
	}
	if err := fault.Dangling(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return nil // there is nothing to mix with
	}
	if firstOf(dir, own...) != "" {
		return nil
	}
	const hint = "name a new folder"
	named := fault.Named(setting)
	at := Resolved(dir)
	if home, err := os.UserHomeDir(); err == nil && at == Resolved(home) {
		return fault.Usagef(hint, "%s: %s is your home folder", named, dir)
	}
	if here, err := os.Getwd(); err == nil && Within(Resolved(here), at) {
		return fault.Usagef(hint, "%s: %s is the current folder or one above it, and has other files", named,
			dir)
	}
	marks := []string{"sparse", "transforms.json", "transforms_train.json"}
	if path := firstOf(dir, append([]string{"images"}, marks...)...); path != "" {
		return fault.Usagef(hint, "%s: %s looks like a capture: it holds %s", named, dir, filepath.Base(path))
	}
	if path := firstOf(filepath.Dir(at), marks...); path != "" {
		return fault.Usagef(hint, "%s: %s looks like a folder of a capture: next to it is %s", named, dir,
			filepath.Base(path))
	}
	return nil
}

// RunMarks mark the folder of a run, or of another command that trains: WrittenFile, and in folders of builds that
// wrote none a model or a checkpoint.
var RunMarks = []string{WrittenFile, ModelFolder + "*", filepath.Join(CheckpointFolder, CheckpointPrefix+"*")}

// RunIn returns what in dir shows that it is the folder of a run, "" for nothing.
func RunIn(dir string) string { return firstOf(dir, RunMarks...) }

// firstOf returns the first place in dir of one of the names, which may have wildcards; "" for none.
func firstOf(dir string, names ...string) string {
	for _, name := range names {
		if list, err := filepath.Glob(filepath.Join(EscapeGlob(dir), name)); err == nil && len(list) > 0 {
			return list[0]
		}
	}
	return ""
}
