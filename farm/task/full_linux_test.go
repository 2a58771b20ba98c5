package task

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vksplat/farm/store"
	must "vksplat/internal/musttest"
)

// fullDisk mounts a disk of its own on a folder, and takes all its room until somebody removes the file that is
// returned.
func fullDisk(t *testing.T, dir string) (filler string) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o777))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("a disk of its own is root's to make:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	filler = filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o666); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return filler
}

// TestStoreFull has no room for results: they are waited for with, somebody is told why, and they go up once there is
// room.
func TestStoreFull(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, `checkpoint_every = "1h"`)
	o := f.options(0, 1, "a")
	filler := fullDisk(t, filepath.Join(f.top, "results"))
	const want = "waiting for the store: no space left on device"
	told, free := 0, false
	o.Report = func(p Progress) {
		if p.Message == want {
			if told++; told == 3 {
				free = p.Free && p.Away
				if err := os.Remove(filler); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if _, err := Run(t.Context(), o); err != nil || told < 3 || !free {
		t.Fatalf("%v; told %d times, that the device is free %v", err, told, free)
	}
	if log := f.read("train", "log", "a00001.log"); !strings.Contains(log, want) {
		t.Errorf("the log says: %s", log)
	}
	root := must.Get(o.Roots.Open("outputs"))(t)
	if m, err := store.Result(t.Context(), root, "job/train"); err != nil || m == nil {
		t.Errorf("%+v, %v", m, err)
	}
}
