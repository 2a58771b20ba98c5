package depth

import (
	"errors"
	"io/fs"
	"os"

	"vksplat/internal/fault"
)

// refuseFolder is the error of a folder of maps that is none.
func refuseFolder(dir string, f *form) error {
	info, err := os.Stat(dir)
	e := &fault.Error{Op: f.op, Path: dir,
		Hint: fault.Setting(f.setting) + " names a folder below the capture's, or an absolute one"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Err = errors.New("no such folder")
	case err != nil:
		e.Err, e.Kind = fault.TrimPath(err), fault.ReadKind(err)
	case !info.IsDir():
		e.Err = errors.New("this is a file, and a folder of maps is wanted")
		e.Hint += ": of one map give the folder that it is in"
	default:
		return nil
	}
	return e
}
