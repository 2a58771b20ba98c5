//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// lock acquires a lock on a file, exclusive or shared, or fails with ErrLocked. It ends with the process.
func lock(path string, shared bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	if err := tryFlock(f, how); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(ErrLocked, f.Close())
		}
		// The file system has no locks: continue without. Locks reports it.
	}
	return func() { _ = f.Close() }, nil
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

// Locks is the error of a file system without locks, where Lock does nothing.
func Locks(path string) error {
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

// isStale reports a file handle that its server has forgotten.
func isStale(err error) bool { return errors.Is(err, syscall.ESTALE) }
