package capture

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// TestPhotoNames wants names found that a list of photos, a name a line, cannot hold.
func TestPhotoNames(t *testing.T) {
	for name, want := range map[string]bool{"a b.jpg": false, "-a.JPG": false, "ä.jpg": false, " a.jpg": true,
		"a.jpg ": true, "a\nb.jpg": true, `a\b.jpg`: true} {
		if isOdd(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestUnread names links to nothing and to folders among the photos, and leaves other odd files alone.
func TestUnread(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(in("photo.jpg"), nil, 0o666), os.Symlink("photo.jpg", in("link.jpg")),
		os.Symlink("nothing", in("lost.jpg")), os.Symlink("film", in("film.mp4")), os.Symlink("gone", in("notes.txt")),
		os.Symlink(dir, in("folder.jpg"))); err != nil {
		t.Skip("no links here: ", err)
	}
	var said []string
	console := cli.Within(t.Context(), func(n cli.Notice) { said = append(said, n.Text) })
	list, err := folderSources(console, dir, &Options{Out: in("out")})
	if err != nil || len(list) != 1 || !slices.Equal(list[0].photos, []string{"link.jpg", "photo.jpg"}) {
		t.Fatal(list, err)
	}
	for i, want := range []string{"film.mp4 is left out: it is a symbolic link to film: ",
		"folder.jpg is left out: it is a symbolic link to ", "lost.jpg is left out: it is a symbolic link to nothing: "} {
		if i >= len(said) || !strings.HasPrefix(said[i], in(want)) {
			t.Errorf("%q lacks %q", said, want)
		}
	}
	if len(said) != 3 {
		t.Errorf("%q", said)
	}
}

// TestNameSources wants a folder of its own for every source, whatever the names of the others, and none without one.
func TestNameSources(t *testing.T) {
	var list []*source
	for _, path := range []string{"p/a_3", "q/a", "r/a", "s/a_2", "t/.photos", "u/.mp4"} {
		list = append(list, &source{path: path})
	}
	must.Do(t, nameSources(list))
	seen := map[string]bool{}
	for _, s := range list {
		if s.folder == "" || seen[s.folder] {
			t.Errorf("%s is in %q", s.path, s.folder)
		}
		seen[s.folder] = true
	}
	was := disksFold
	defer func() { disksFold = was }()
	for _, disksFold = range []bool{false, true} {
		err := nameSources([]*source{{photos: []string{"/x/a.jpg", "/y/A.JPG"}}})
		if disksFold != errors.Is(err, fault.ErrUsage) {
			t.Errorf("two names that differ in case, on a disk where they do not (%v): %v", disksFold, err)
		}
	}
	if err := nameSources([]*source{{path: "x\ny", video: true}, {path: "z"}}); !errors.Is(err, fault.ErrData) {
		t.Errorf("a video with a line break: %v", err)
	}
}

// TestBounds wants little memory taken for what damaged files only claim.
func TestBounds(t *testing.T) {
	ppm := func(text string) func() error {
		return func() error {
			f, err := os.Create(filepath.Join(t.TempDir(), "ppm"))
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(text)
			return errors.Join(err, writePNG(f, filepath.Join(t.TempDir(), "a.png")))
		}
	}
	for name, test := range map[string]struct {
		read func() error
		want string
	}{
		"cut":   {ppm("P6\n8192 8192\n255\nabc"), "8192 x 8192 pixels that ends after 3 bytes"},
		"large": {ppm("P6\n65536 65536\n255\nabc"), "65536 x 65536 pixels; 268435456 pixels are the most"},
		"wide":  {ppm("P6\n9000000000 9000000000\n255\nabc"), "pixels are the most"},
		"kind":  {ppm("P6\n1 1\n65535\nabcdef"), "without 8 bits"},
	} {
		allocated := filetest.Allocated()
		err := test.read()
		if used := allocated(); used > 8<<20 || err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %d MB for %v", name, used>>20, err)
		}
	}
}
