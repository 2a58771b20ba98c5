//go:build linux || darwin || freebsd

package photos

import "syscall"

// diskFree returns the bytes that a folder's disk has left for this user.
func diskFree(dir string) (int64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
