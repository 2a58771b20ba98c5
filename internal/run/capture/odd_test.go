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

// TestNameSources wants a folder of its own for every source, whatever the names of the others, and none without one.
func TestNameSources(t *testing.T) {
	var list []*source
	for _, path := range []string{"p/a_3", "q/a", "r/a", "s/a_2", "t/.photos", "u/.mp4"} {
		list = append(list, &source{path: path})
	}
	if err := nameSources(list); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range list {
		if s.folder == "" || seen[s.folder] {
			t.Errorf("%s is in %q", s.path, s.folder)
		}
		seen[s.folder] = true
	}
	if err := nameSources([]*source{{photos: []string{"/x/a\nb.jpg"}}}); !errors.Is(err, fault.ErrData) {
		t.Errorf("a photo of the command line with a line break: %v", err)
	}
	if err := nameSources([]*source{{path: "x\ny", video: true}, {path: "z"}}); !errors.Is(err, fault.ErrData) {
		t.Errorf("a video with a line break: %v", err)
	}
}
