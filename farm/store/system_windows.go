package store

import (
	"errors"
	"syscall"
)

// networkNameDeleted is the error of a lost connection to a share.
const networkNameDeleted syscall.Errno = 64

// isStale reports a file whose share is away.
func isStale(err error) bool { return errors.Is(err, networkNameDeleted) }
