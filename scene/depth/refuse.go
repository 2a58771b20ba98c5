package depth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/fault"
	"vksplat/scene"
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

// refuseMaps is the error of the maps of dir that cannot be used, nil if all can: that of the first, which counts the
// others and names some. Several cameras may have one photo, and one map.
func refuseMaps(dir string, files []string, errs []error) error {
	var first error
	var more []string
	last := ""
	for i, err := range errs {
		switch {
		case err == nil || files[i] == last:
			continue
		case first == nil:
			first = err
		default:
			name := strings.TrimPrefix(files[i], dir+string(filepath.Separator))
			more = append(more, filepath.ToSlash(name))
		}
		last = files[i]
	}
	var e *fault.Error
	if n := len(more); n > 0 && errors.As(first, &e) {
		text := fmt.Sprintf("%d more maps cannot be used, for this reason or others", n)
		e.Err = fmt.Errorf("%w; %s", e.Err, scene.Warning{Count: n, Names: scene.FirstNames(more), Text: text})
	}
	return first
}
