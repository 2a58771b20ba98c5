package splatfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	return &fault.Error{Err: fmt.Errorf("%s already exists and is not part of an earlier model", what),
		Hint: "name a file in a folder of its own, or move away what is there"}
}

// moveAll moves folders of these names, and then the file that makes a model of them. Where that fails, no folder stays
// behind.
func moveAll(from, to string, names []string, file, path string) (err error) {
	var moved []string
	defer func() {
		if err != nil {
			for _, folder := range moved {
				_ = os.RemoveAll(folder) // the first error is the one to report
			}
		}
	}()
	for _, name := range names {
		folder := filepath.Join(to, name)
		if err := os.Rename(filepath.Join(from, name), folder); err != nil {
			return err
		}
		moved = append(moved, folder)
	}
	if err := os.Rename(file, path); err != nil {
		return err
	}
	return atomicfile.SyncDir(to)
}
