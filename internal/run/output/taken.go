package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"vksplat/internal/fault"
)

// RefuseTaken refuses places of files that are folders, or that are below a file. Remedy is what can be done besides
// moving those away.
func RefuseTaken(paths []string, remedy string) error {
	for _, path := range paths {
		st, err := os.Lstat(path)
		switch {
		case err == nil && st.IsDir():
			return fault.Usagef("move it away, or "+remedy, "%s is a folder, but a file of that name is to be written",
				path)
		// On Windows ENOTDIR is what a folder that does not exist yet gives, too.
		case errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrNotExist):
			return fault.Usagef("move it away, or "+remedy, "%s cannot be written: one of the folders above is a file",
				path)
		}
	}
	return nil
}

var probeName = regexp.MustCompile(`^\.probe\d+$`)

// RemoveTemps removes from dir what writes left that were cut short, of files whose name, or the first bytes of it, is
// ours, and probes of the disk.
func RemoveTemps(dir string, ours func(base string, cut bool) bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is none, or nothing can be removed either
	}
	for _, e := range entries {
		base, cut := fault.TempOf(e.Name())
		if e.Type().IsRegular() && (base != "" && ours(base, cut) || probeName.MatchString(e.Name())) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // a leftover only takes room
		}
	}
}

// EscapeGlob makes a path mean itself in a pattern. Where a backslash separates folders, it escapes nothing.
func EscapeGlob(path string) string {
	if filepath.Separator != '\\' {
		path = strings.ReplaceAll(path, `\`, `\\`)
	}
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}
