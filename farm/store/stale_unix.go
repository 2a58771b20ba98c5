//go:build unix

package store

import (
	"errors"
	"syscall"
)

// isStale tells of a file that its server has forgotten.
func isStale(err error) bool { return errors.Is(err, syscall.ESTALE) }
