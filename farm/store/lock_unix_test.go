//go:build unix

package store

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestNoLocks has a file system without locks be told of, and not be taken for one where somebody else has the lock.
func TestNoLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := Locks(path); err != nil {
		t.Error(err)
	}
	unlock, err := lock(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := Locks(path); err != nil {
		t.Errorf("a lock that somebody has: %v", err)
	}
	unlock()
	defer func(before func(int, int) error) { flock = before }(flock)
	flock = func(int, int) error { return syscall.ENOLCK }
	if err := Locks(path); !errors.Is(err, syscall.ENOLCK) {
		t.Errorf("no locks: %v", err)
	}
	if unlock, err = lock(path, false); err != nil {
		t.Fatalf("without locks nothing goes on: %v", err)
	}
	unlock()
	if err := Locks(filepath.Join(path, "none")); err == nil {
		t.Error("a file that cannot be there can be locked")
	}
}
