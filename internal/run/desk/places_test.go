package desk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// TestLongListing lists no more than a page can show, and counts what it leaves out and every photo.
func TestLongListing(t *testing.T) {
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, name) }
	for i := range mostEntries + 20 {
		name := fmt.Sprintf("f%04d", i)
		err := os.Mkdir(in(name), 0o777)
		if i == 1 {
			err = errors.Join(err, os.WriteFile(filepath.Join(in(name), output.StatsFile), nil, 0o666))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.ply", "x.jpg", "y.png", "z.mp4", "z.txt", ".hidden.ply"} {
		must.Do(t, os.WriteFile(in(name), nil, 0o666))
	}
	l := must.Get(places{root}.list(""))(t)
	// the model and 499 folders; the others and the video are left out
	if len(l.Entries) != mostEntries || l.More != 22 || l.Photos != 2 || l.Videos != 1 {
		t.Fatalf("%d entries, %d more, %d photos", len(l.Entries), l.More, l.Photos)
	}
	for i, want := range []string{kindModel, kindFolder, kindRun} {
		if got := l.Entries[i]; got.Kind != want {
			t.Errorf("%+v, want the kind %s", got, want)
		}
	}
}

// TestFootageIsMarked wants folders of photos and videos listed as what they are, with how many they hold.
func TestFootageIsMarked(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"photos/a.jpg", "photos/b.png", "mixed/a.jpg", "mixed/b.mp4", "walk.mp4", "texts/a.txt"} {
		path := filepath.Join(root, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, nil, 0o666)))
	}
	l, err := places{root}.list("")
	if err != nil || l.footage != (footage{0, 1}) {
		t.Fatalf("%+v, %v", l, err)
	}
	want := []entry{{"mixed", "mixed", kindFootage, footage{1, 1}}, {"photos", "photos", kindFootage, footage{2, 0}},
		{"texts", "texts", kindFolder, footage{}}, {"walk.mp4", "walk.mp4", kindFootage, footage{}}}
	if !slices.Equal(l.Entries, want) {
		t.Errorf("%+v, want %+v", l.Entries, want)
	}
}
