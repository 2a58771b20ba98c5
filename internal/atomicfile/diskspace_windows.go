package atomicfile

import (
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// FreeSpace returns the bytes that may be written to the disk of path, which need not exist yet. known is false where
// the system does not tell.
func FreeSpace(path string) (bytes int64, known bool) {
	for {
		if _, err := os.Stat(path); err == nil {
			break
		}
		parent := filepath.Dir(path)
		if parent == path {
			return 0, false
		}
		path = parent
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, false
	}
	var free uint64 // of this user's quota
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(min(free, math.MaxInt64/2)), err == nil
}
