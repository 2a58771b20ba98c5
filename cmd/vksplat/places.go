package main

import (
	"os"
	"path/filepath"
)

// refusePlace refuses to fill a folder that is probably a mistake: the user's working folder or one above it, the home
// folder, or a capture, unless it is empty or holds one of the command's own files.
func refusePlace(dir, flag string, own ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return nil // there is nothing to mix with
	}
	for _, name := range own {
		if list, err := filepath.Glob(filepath.Join(escapeGlob(dir), name)); err == nil && len(list) > 0 {
			return nil
		}
	}
	const hint = "name a new folder, which is made"
	at := resolved(dir)
	if home, err := os.UserHomeDir(); err == nil && at == resolved(home) {
		return usagef(hint, "%s%s is your home folder", flag, dir)
	}
	if here, err := os.Getwd(); err == nil && within(resolved(here), at) {
		return usagef(hint, "%s%s is a folder with other files, which this command is run in or below", flag, dir)
	}
	if name := captureMark(dir, "images", "sparse", "transforms.json", "transforms_train.json"); name != "" {
		return usagef(hint, "%s%s looks like a capture: it holds %s", flag, dir, name)
	}
	if name := captureMark(filepath.Dir(at), "sparse", "transforms.json", "transforms_train.json"); name != "" {
		return usagef(hint, "%s%s looks like a folder of a capture: beside it is %s", flag, dir, name)
	}
	return nil
}

// captureMark returns the first of the names that dir holds, "" for none.
func captureMark(dir string, names ...string) string {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return name
		}
	}
	return ""
}

// runMarks are what the folder of a run holds.
var runMarks = []string{writtenFile, asideFolder + "*", filepath.Join(checkpointFolder, checkpointPrefix+"*"), modelFolder + "*", originFile, captureFile}
