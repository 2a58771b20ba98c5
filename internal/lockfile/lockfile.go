// Package lockfile has processes of one machine, and of those that share a file system with locks, exclude each other.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrLocked is the error of a lock held by another process.
var ErrLocked = errors.New("another process has it locked")

// How is the kind of a lock.
type How int

const (
	Exclusive How = iota
	Shared        // with other shared ones
	Removed       // exclusive, and the file is removed with it
)

// Wait is Try that waits for the lock until ctx ends.
func Wait(ctx context.Context, path string, how How) (unlock func(), err error) {
	for {
		if unlock, err = Try(path, how); !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
