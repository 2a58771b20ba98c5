//go:build unix

package task

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
)

// TestDamagedInput says how results of another task are made whole.
func TestDamagedInput(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarmOf(t, "[[task]]\nkind = \"train\"\nsource = \"scan\"\n"+
		"[[task]]\nkind = \"render\"\nmodel = \"@train\"\ntrajectory = \"interp\"\nframes = \"5-12\"\n")
	if _, err := Run(t.Context(), f.options(0, 1, "a")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(f.top, "results", "job", "train", "out")
	for _, damage := range []func() error{
		func() error { return os.Remove(filepath.Join(out, "model")) },
		func() error { return os.WriteFile(filepath.Join(out, "MANIFEST.json"), []byte("{"), 0o666) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		_, err := Run(t.Context(), f.options(1, 1, "b"))
		want := "vksplat farm fsck " + filepath.Join(f.top, "results", "job") + " --repair"
		if !errors.Is(err, fault.ErrData) || !strings.Contains(fault.Hint(err), want) {
			t.Errorf("%v, hint %q", err, fault.Hint(err))
		}
	}
}

// TestTableNamesModels names models in the table of an eval as the job does, wherever they are on this machine.
func TestTableNamesModels(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarmOf(t, "[[task]]\nkind = \"eval\"\nmodels = [\"scan/photo\"]\nsource = \"scan\"\n")
	if _, err := Run(t.Context(), f.options(0, 1, "a")); err != nil {
		t.Fatal(err)
	}
	if table := f.read("eval", "out", "table.md"); !strings.Contains(table, "\nscan/photo: drawn") ||
		strings.Contains(table, f.top) {
		t.Errorf("the table is %s", table)
	}
}
