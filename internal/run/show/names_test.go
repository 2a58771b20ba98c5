package show

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/wording"
	"vksplat/view"
)

// TestExportNames refuses names of exports as open refuses those of runs, and proposes none of these.
func TestExportNames(t *testing.T) {
	for name, want := range map[string]string{"-x": "flag", ".x": "hidden", "con": "device", "a\u202eb": "not show",
		"a/b": "slash", strings.Repeat("x", 121): "limit"} {
		err := new(editor).Export(&view.ExportQuery{Name: name, Format: "ply"})
		if err == nil || !strings.Contains(err.Error(), want) || fault.Hint(err) == "" {
			t.Errorf("%q: %v", name, err)
		}
	}
	long := strings.Repeat("x", 108) + "_edited"
	for path, want := range map[string]string{"room.ply": "room_edited", strings.Repeat("x", 118) + ".ply": long,
		"-x.ply": "x_edited", ". a.spz": "a_edited", "a\u200bb.ply": "a_b_edited"} {
		e := &editor{path: path, folder: t.TempDir()}
		if got := e.freeName(); got != want {
			t.Errorf("an edit of %q is to be %q, want %q", path, got, want)
		}
		must.Do(t, os.WriteFile(filepath.Join(e.folder, want+".ply"), nil, 0o666))
		if got := e.freeName(); got != want+"_2" || len(got) > wording.MaxName {
			t.Errorf("another edit of %q is to be %q", path, got)
		}
	}
}
