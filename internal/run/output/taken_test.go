package output

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestClaimFolder wants a folder to be one run's at a time, and a release to leave nothing behind.
func TestClaimFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "out")
	release, err := Claim(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(dir, true); !errors.Is(err, ErrBusy) ||
		fault.ExitCode(err) != fault.ExitTryAgain ||
		fault.Hint(err) == "" {
		t.Errorf("a second run: %v", err)
	}
	shared, err := Claim(dir, false)
	if err != nil {
		t.Fatalf("exports may share a folder: %v", err)
	}
	shared()
	release()
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	again := must.Get(Claim(dir, true))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "model.ply"), nil, 0o666))
	again()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v; want the model alone", entries, err)
	}
}
