package output

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestEscapeGlob finds a file by a pattern whose folder has the characters of patterns. Some systems know no escapes.
func TestEscapeGlob(t *testing.T) {
	names := []string{"[a]b", "c[", "]d"}
	if filepath.Separator == '/' {
		names = append(names, `*e?`, `f\[g]`, `h\`)
	}
	for _, name := range names {
		pattern, top := EscapeGlob(name), t.TempDir()
		if strings.Count(pattern, `\`) > 2*strings.Count(name, `\`) {
			t.Errorf("%s: %s has an escape", name, pattern)
		}
		file := filepath.Join(top, name, "x.txt")
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o777))
		must.Do(t, os.WriteFile(file, nil, 0o666))
		if found := must.Get(filepath.Glob(filepath.Join(EscapeGlob(top), pattern, "*.txt")))(t); !slices.Equal(found,
			[]string{file}) {
			t.Errorf("%s: %q", name, found)
		}
	}
}
