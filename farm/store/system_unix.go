//go:build unix

package store

import (
	"errors"
	"syscall"
)

// isStale reports a file handle that its server has forgotten.
func isStale(err error) bool { return errors.Is(err, syscall.ESTALE) }
