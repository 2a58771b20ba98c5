//go:build unix

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// Try acquires a lock on a file, or fails at once with ErrLocked. It ends with the process. On a file system without
// locks it does nothing.
func Try(path string, how How) (unlock func(), err error) {
	flag := syscall.LOCK_EX
	if how == Shared {
		flag = syscall.LOCK_SH
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		err = tryFlock(f, flag)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(ErrLocked, f.Close())
		case how != Removed:
			return func() { _ = f.Close() }, nil
		case err != nil || isAt(f, path):
			return func() {
				_ = os.Remove(path)
				_ = f.Close()
			}, nil
		}
		_ = f.Close() // another process removed the file between our open and our lock
	}
}

// isAt reports whether path still names the open file f.
func isAt(f *os.File, path string) bool {
	here, err := f.Stat()
	there, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(here, there)
}

// flock is replaced in tests.
var flock = syscall.Flock

// tryFlock acquires a lock without waiting. On FUSE and network file systems signals interrupt it.
func tryFlock(f *os.File, how int) (err error) {
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = flock(int(f.Fd()), how|syscall.LOCK_NB)
	}
	return err
}

// Check is the error of a file system without locks.
func Check(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer f.Close() // gives the lock back
	if err := tryFlock(f, syscall.LOCK_SH); err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		return &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return nil
}
