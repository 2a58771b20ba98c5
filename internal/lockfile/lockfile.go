// Package lockfile has processes of one machine, and of those that share a file system with locks, exclude each other.
package lockfile

import "errors"

// ErrLocked is the error of a lock held by another process.
var ErrLocked = errors.New("another process has it locked")

// How is the kind of a lock.
type How int

const (
	Exclusive How = iota
	Shared        // with other shared ones
	Removed       // exclusive, and the file is removed with it
)
