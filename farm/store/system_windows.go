package store

import (
	"errors"
	"os"
	"syscall"
)

// errSharingViolation is missing in package syscall.
const errSharingViolation syscall.Errno = 32

// lock acquires a lock on a file, exclusive or shared, or fails with ErrLocked. It ends with the process.
func lock(path string, shared bool) (unlock func(), err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	access, share := uint32(syscall.GENERIC_READ|syscall.GENERIC_WRITE), uint32(0)
	if shared {
		access, share = syscall.GENERIC_READ, syscall.FILE_SHARE_READ
	}
	h, err := syscall.CreateFile(name, access, share, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharingViolation) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { _ = syscall.CloseHandle(h) }, nil
}

// Locks is the error of a file system without locks.
func Locks(string) error { return nil }

// networkNameDeleted is the error of a lost connection to a share.
const networkNameDeleted syscall.Errno = 64

// isStale reports a file whose share is away.
func isStale(err error) bool { return errors.Is(err, networkNameDeleted) }
