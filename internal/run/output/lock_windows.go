package output

import (
	"errors"
	"os"
	"syscall"
)

// Windows' names, which package syscall lacks.
const (
	fileFlagDeleteOnClose               = 0x04000000
	errSharingViolation   syscall.Errno = 32
)

// lockFile takes path for this process alone: it is open without sharing.
// The function it returns closes it, which removes it; so does the end of the
// process.
func lockFile(path string) (func(), error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS,
		syscall.FILE_ATTRIBUTE_NORMAL|fileFlagDeleteOnClose, 0)
	if errors.Is(err, errSharingViolation) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { _ = syscall.CloseHandle(h) }, nil
}
