//go:build unix

package meter

import (
	"runtime"
	"syscall"
)

// PeakRSS returns the bytes of memory that the process had resident at most, 0
// if the system does not tell.
func PeakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10 // kilobytes everywhere else
}
