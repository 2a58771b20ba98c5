//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// lock takes a lock on a file, for this process alone or shared with others that read. Where somebody else has it, the error is errLocked. The end of the
// process gives it back, too.
func lock(path string, shared bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
