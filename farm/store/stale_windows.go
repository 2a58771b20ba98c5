package store

import (
	"errors"
	"syscall"
)

// networkNameDeleted is what Windows says when the connection to a share was lost.
const networkNameDeleted syscall.Errno = 64

// isStale tells of a file whose share is away.
func isStale(err error) bool { return errors.Is(err, networkNameDeleted) }
