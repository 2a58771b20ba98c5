package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/render"
)

// TestClaimFolder wants a folder to be one run's at a time, and a release to leave nothing behind.
func TestClaimFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "out")
	release, err := output.Claim(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := output.Claim(dir, true); !errors.Is(err, output.ErrBusy) ||
		fault.ExitCode(err) != fault.ExitTryAgain ||
		fault.Hint(err) == "" {
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
	o := &render.Options{Out: filepath.Join(t.TempDir(), "frames")}
	release, err := o.Claim()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := o.Claim(); !errors.Is(err, output.ErrBusy) || fault.ExitCode(err) != fault.ExitTryAgain ||
		fault.Hint(err) == "" {
		t.Errorf("a second render: %v", err)
	}
}
