package store

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
)

// TestNames asks for names below a key, of a file, and where nothing is.
func TestNames(t *testing.T) { onRoots(t, testNames) }

func testNames(t *testing.T, r *rig) {
	for _, key := range []string{"j/t/b/1", "j/t/b/2", "j/t/a", "j/t2/x", "j/t/.hidden"} {
		putText(t, r, key, "x")
	}
	for key, want := range map[string][]string{"j/t": {"a", "b"}, "j/t/a": {"a"}, "j": {"t", "t2"}, "gone": nil} {
		if got, err := r.Names(key); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", key, got, err, want)
		}
	}
}

// TestForgetStagesWithoutFiles leaves a stage as an attempt does that is killed in the middle of its first file.
func TestForgetStagesWithoutFiles(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(Options{URL: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a2-X", "a3-Y"} {
		place := filepath.Join(dir, filepath.FromSlash(stage(r, "task", name)))
		must.Do(t, os.MkdirAll(place, 0o777))
		must.Do(t, os.WriteFile(filepath.Join(place, ".model.tmp123"), []byte("half"), 0o666))
	}
	must.Do(t, forgetStages(r, "task", 2))
	left, err := filepath.Glob(filepath.Join(dir, "task", tempFolder, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "a3-Y" {
		t.Errorf("left: %v, %v; the stage of a later attempt alone should be", left, err)
	}
}
