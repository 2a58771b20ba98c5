//go:build unix

package lockfile

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	must "vksplat/internal/musttest"
)

// TestNoLocks has a file system without locks be told of, and not be taken for one where somebody else has the lock.
func TestNoLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := Check(path); err != nil {
		t.Error(err)
	}
	unlock, err := Try(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(path); err != nil {
		t.Errorf("a lock that somebody has: %v", err)
	}
	unlock()
	defer func(before func(int, int) error) { flock = before }(flock)
	flock = func(int, int) error { return syscall.ENOLCK }
	if err := Check(path); !errors.Is(err, syscall.ENOLCK) {
		t.Errorf("no locks: %v", err)
	}
	if unlock, err = Try(path, Exclusive); err != nil {
		t.Fatalf("without locks nothing goes on: %v", err)
	}
	unlock()
	if err := Check(filepath.Join(path, "none")); err == nil {
		t.Error("a file that cannot be there can be locked")
	}
}

// TestInterruptedLocks has the system be interrupted by a signal as it looks for a lock that somebody has: it is not
// taken for had.
func TestInterruptedLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock := must.Get(Try(path, Exclusive))(t)
	defer unlock()
	defer func(before func(int, int) error) { flock = before }(flock)
	system, calls := flock, 0
	flock = func(fd, how int) error {
		if calls++; calls%2 == 1 {
			return syscall.EINTR
		}
		return system(fd, how)
	}
	if _, err := Try(path, Shared); !errors.Is(err, ErrLocked) {
		t.Errorf("a lock that somebody has: %v", err)
	}
	if err := Check(path); err != nil {
		t.Errorf("a file system with locks: %v", err)
	}
}
