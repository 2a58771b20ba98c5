//go:build linux || darwin || freebsd

package atomicfile

import (
	"math"
	"path/filepath"
	"syscall"
)

// FreeSpace returns the bytes that may be written to the disk of path, which need not exist yet. known is false where
// the system does not tell.
func FreeSpace(path string) (bytes int64, known bool) {
	for {
		var st syscall.Statfs_t
		err := syscall.Statfs(path, &st)
		if err == nil {
			size := float64(st.Bavail) * float64(st.Bsize)
			// some virtual file systems have no blocks and no limit
			return int64(min(max(size, 0), math.MaxInt64/2)), st.Blocks > 0
		}
		parent := filepath.Dir(path)
		if parent == path || err != syscall.ENOENT {
			return 0, false
		}
		path = parent
	}
}
