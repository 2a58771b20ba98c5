package capture

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
)

// TestCheckName wants names refused that a list of photos, a name a line, cannot hold.
func TestPhotoNames(t *testing.T) {
	for name, want := range map[string]bool{"a b.jpg": true, "-a.JPG": true, "ä.jpg": true, " a.jpg": false,
		"a.jpg ": false, "a\nb.jpg": false, `a\b.jpg`: false} {
		if err := checkName(name, name); (err == nil) != want || err != nil && !errors.Is(err, fault.ErrData) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestIsRegular wants links to nothing and to folders passed over.
func TestIsRegular(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(in("photo.jpg"), nil, 0o666), os.Symlink(in("photo.jpg"), in("link.jpg")),
		os.Symlink(in("nothing"), in("lost.jpg")), os.Symlink(dir, in("folder.jpg"))); err != nil {
		t.Skip("no links here: ", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		want := e.Name() == "photo.jpg" || e.Name() == "link.jpg"
		if got := isRegular(in(e.Name()), e); got != want {
			t.Errorf("%s: %v", e.Name(), got)
		}
	}
}
