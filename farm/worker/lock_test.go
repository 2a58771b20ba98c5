package worker

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"vksplat/farm/store"
)

// TestLocks wants locks that other users can take, and a word about one that nobody can.
func TestLocks(t *testing.T) {
	d := &Device{ID: "uuid", Name: "GPU"}
	n := &node{Options: Options{Locks: t.TempDir()}}
	if free, err := n.isFree(d); !free || err != nil {
		t.Errorf("a device that nobody uses: %v, %v", free, err)
	}
	info, err := os.Stat(n.lockFile(d))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o666 {
		t.Errorf("the lock's file is %v, %v", info.Mode(), err)
	}
	unlock, err := store.Lock(context.Background(), n.lockFile(d))
	if err != nil {
		t.Fatal(err)
	}
	if free, err := n.isFree(d); free || err != nil {
		t.Errorf("a device in use: %v, %v", free, err)
	}
	unlock()
	o := Options{Work: t.TempDir(), Locks: t.TempDir(), Devices: []Device{*d}}
	if err := os.Mkdir(filepath.Join(o.Locks, filepath.Base(n.lockFile(d))), 0o777); err != nil { // where a file would have to be
		t.Fatal(err)
	}
	if err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "lock device") {
		t.Errorf("a worker begins without its locks: %v", err)
	}
}
