package show

import (
	"strings"
	"testing"

	"vksplat/internal/fault"
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
	for path, want := range map[string]string{"room.ply": "room_edited", "-x.ply": "x_edited", ". a.spz": "a_edited",
		"a\u200bb.ply": "a_b_edited"} {
		if got := (&editor{path: path, folder: t.TempDir()}).freeName(); got != want {
			t.Errorf("an edit of %q is to be %q, want %q", path, got, want)
		}
	}
}
