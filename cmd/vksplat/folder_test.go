package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
)

// TestClaimFolder wants a folder to be one run's at a time, and a release to leave nothing behind.
func TestClaimFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "out")
	release, err := claimFolder(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claimFolder(dir, true); !errors.Is(err, errBusy) || fault.ExitCode(err) != fault.ExitTryAgain ||
		fault.Hint(err) == "" {
		t.Errorf("a second run: %v", err)
	}
	shared, err := claimFolder(dir, false)
	if err != nil {
		t.Fatalf("exports may share a folder: %v", err)
	}
	shared()
	release()
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	again, err := claimFolder(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.ply"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	again()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v; want the model alone", entries, err)
	}
}

func TestPeakRSS(t *testing.T) {
	if got := peakRSS(); got < 1<<20 || got > 1<<40 {
		t.Errorf("%d bytes", got)
	}
}

// TestRenderClaims wants the pictures of a folder to be one render's at a time.
func TestRenderClaims(t *testing.T) {
	t.Parallel() // it waits
	o := &renderOptions{out: filepath.Join(t.TempDir(), "frames")}
	release, err := o.claim()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := o.claim(); !errors.Is(err, errBusy) || fault.ExitCode(err) != fault.ExitTryAgain ||
		fault.Hint(err) == "" {
		t.Errorf("a second render: %v", err)
	}
}

// TestVideoClaims wants a video to be one render's at a time, and what killed ones left of it to go.
func TestVideoClaims(t *testing.T) {
	t.Parallel() // it waits
	dir := t.TempDir()
	file := filepath.Join(dir, "v.mp4")
	for _, name := range []string{".v.mp4.tmp12", ".v.mp4.tmpx", ".w.mp4.tmp12", "v.mp4"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	v, err := newVideoPipe(file)
	if err != nil {
		t.Fatal(err)
	}
	if isFile(filepath.Join(dir, ".v.mp4.tmp12")) || !isFile(filepath.Join(dir, ".v.mp4.tmpx")) || !isFile(filepath.Join(dir, ".w.mp4.tmp12")) {
		t.Error("the wrong files were removed")
	}
	if _, err := newVideoPipe(file); !errors.Is(err, errBusy) || !isFile(v.temp) {
		t.Errorf("a second render: %v", err)
	}
	if err := v.abandon(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
