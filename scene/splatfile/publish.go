package splatfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
)

// folderBeside makes a folder for what is on its way to a path, with a name that says so.
func folderBeside(path string) (string, error) {
	base := filepath.Base(path)
	return os.MkdirTemp(filepath.Dir(path), "."+base[:min(len(base), fault.MaxTempBase)]+".tmp*")
}

// named has an error of a file that is made in a folder name what the user asked for.
func named(err error, temp, path string) error {
	var of *fault.Error
	if errors.As(err, &of) && strings.HasPrefix(of.Path, temp+string(filepath.Separator)) {
		of.Path = path
		if hint := atomicfile.WriteHint(err, path); hint != "" { // the one that is there names the folder, too
			of.Hint = hint
		}
	}
	return err
}

// taken is the error of something that is no part of an earlier model where a model is to be written.
func taken(what string) error {
	return refusal("name a file in a folder of its own, or move away what is there",
		"%s already exists and is not part of an earlier model", what)
}

// checkPlaces refuses folders beside a path with something in them that is none of the files of an earlier model there.
func checkPlaces(path string, folders, earlier []string) error {
	for _, folder := range folders {
		there, err := os.ReadDir(filepath.Join(filepath.Dir(path), folder))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, entry := range there {
			if name := filepath.Join(folder, entry.Name()); !slices.Contains(earlier, name) {
				return taken(filepath.Join(filepath.Dir(path), name))
			}
		}
	}
	return nil
}

// replace puts folders, and then the file that makes a model of them, in place of an earlier model of a path: of that
// goes first what makes it one, then its files. None is ever beside folders that are not its own. Where the last steps
// fail, no folder stays behind.
func replace(from, made, path string, folders, earlier []string) (err error) {
	if err := checkPlaces(path, folders, earlier); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	for _, name := range append([]string{filepath.Base(path)}, earlier...) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, name := range earlier {
		_ = os.Remove(filepath.Dir(filepath.Join(dir, name))) // it stays where something else is in it
	}
	for i, name := range folders {
		if err = os.Rename(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			folders = folders[:i]
			break
		}
	}
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		for _, name := range folders {
			_ = os.RemoveAll(filepath.Join(dir, name)) // the first error is the one to report
		}
		return err
	}
	return atomicfile.SyncDir(dir)
}
