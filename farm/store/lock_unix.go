//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// lock takes a lock on a file, for this process alone or shared with others that read. Where somebody else has it, the
// error is ErrLocked. The end of the process gives it back, too.
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
		// Any other refusal is of a file system without locks: go on without. Locks tells.
	}
	return func() { _ = f.Close() }, nil
}

// flock is the system's. Tests have it refuse.
var flock = syscall.Flock

// tryFlock takes a lock, or says at once why not. File systems of other programs or machines may be interrupted by any
// signal, as this process has them all the time.
func tryFlock(f *os.File, how int) (err error) {
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = flock(int(f.Fd()), how|syscall.LOCK_NB)
	}
	return err
}

// Locks says why a file cannot be locked where it is, nil where it can be: Lock goes on without.
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
