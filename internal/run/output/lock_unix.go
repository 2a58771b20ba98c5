//go:build unix

package output

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes an advisory lock on path. The function it returns removes the
// file and the lock with it; so does the end of the process with the lock alone.
func lockFile(path string) (func(), error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(ErrBusy, f.Close())
		}
		// Any other refusal is of a file system without locks: go on without.
		if err != nil || isAt(f, path) {
			return func() {
				_ = os.Remove(path)
				_ = f.Close()
			}, nil
		}
		// The run before removed the file between our open and our lock.
		_ = f.Close()
	}
}

// isAt reports whether path still names the open file f.
func isAt(f *os.File, path string) bool {
	here, err := f.Stat()
	there, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(here, there)
}
