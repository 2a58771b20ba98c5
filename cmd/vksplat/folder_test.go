package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
)

// TestClaimFolder wants a folder to be one run's at a time, and a release to leave nothing behind.
func TestClaimFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "out")
	release, err := output.Claim(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := output.Claim(dir, true); !errors.Is(err, output.ErrBusy) || exitCode(err) != exitRetry || remedy.Of(err) == "" {
		t.Errorf("a second run: %v", err)
	}
	shared, err := output.Claim(dir, false)
	if err != nil {
		t.Fatalf("exports may share a folder: %v", err)
	}
	shared()
	release()
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	again, err := output.Claim(dir, true)
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

// TestRenderClaims wants the pictures of a folder to be one render's at a time.
func TestRenderClaims(t *testing.T) {
	t.Parallel() // it waits
	o := &renderOptions{out: filepath.Join(t.TempDir(), "frames")}
	release, err := o.claim()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := o.claim(); !errors.Is(err, output.ErrBusy) || exitCode(err) != exitRetry || remedy.Of(err) == "" {
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
	if output.IsFile(filepath.Join(dir, ".v.mp4.tmp12")) || !output.IsFile(filepath.Join(dir, ".v.mp4.tmpx")) || !output.IsFile(filepath.Join(dir, ".w.mp4.tmp12")) {
		t.Error("the wrong files were removed")
	}
	if _, err := newVideoPipe(file); !errors.Is(err, output.ErrBusy) || !output.IsFile(v.temp) {
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
