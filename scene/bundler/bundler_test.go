package bundler_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
)

func TestFixture(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	loadtest.CheckFixture(t, c, true)
	if c.Format != scene.FormatBundler {
		t.Error(c.Format)
	}
	// the file named in place of the folder
	c = loadtest.MustLoad(t, filepath.Join(root, "bundle", "bundle.out"), loadtest.AnyModel())
	loadtest.CheckFixture(t, c, true)
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"version": {"v0.3", "v0.4", "version 0.3 is read"},
		"focal":   {"60.25 ", "-60.25 ", "has the focal length -60.25"},
		"number":  {"60.25 ", "x ", `"x" is not a number`},
		"count":   {"\n5 8", "\n4 8", ""},
		"huge":    {"\n5 8", "\n5 2000000000", "the file ends where a number is expected"},
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.CheckEdited(t, loadtest.Fixture(t, "images"), "bundle/bundle.out", c.from, c.to, c.want)
		})
	}
}

// Photos of one name in two folders, under names of another machine, are those of their folders.
func TestFolders(t *testing.T) {
	root := loadtest.Fixture(t, "left")
	list, found := filepath.Join(root, "list.txt"), ""
	for _, at := range []string{list, filepath.Join(root, "bundle", "list.txt")} {
		if _, err := os.Stat(at); err == nil {
			found = at
		}
	}
	data, err := os.ReadFile(found)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "./shot_", "/data/left/shot_")
	text = strings.ReplaceAll(text, "left/shot_4", "right/shot_3")
	if err := errors.Join(os.WriteFile(found, []byte(text), 0o666), os.Mkdir(filepath.Join(root, "right"), 0o777),
		os.Rename(filepath.Join(root, "left", "shot_4.png"), filepath.Join(root, "right", "shot_3.png"))); err != nil {
		t.Fatal(err)
	}
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	var names []string
	for _, cam := range c.Cameras {
		names = append(names, cam.Name)
		if rel, err := filepath.Rel(root, cam.Path); err != nil || filepath.ToSlash(rel) != cam.Name {
			t.Errorf("%s has the photo %s", cam.Name, cam.Path)
		}
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "left/shot_3.png") ||
		!strings.Contains(got, "right/shot_3.png") {
		t.Errorf("the cameras are %s", got)
	}
}

// A first line that does not end is not read whole.
func TestFirstLine(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	file := filepath.Join(root, "bundle", "bundle.out")
	if err := os.WriteFile(file, []byte("# Bundle file v0.3"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 64<<20); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := load.Capture(root, loadtest.AnyModel())
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; err == nil || used > 16<<20 {
		t.Errorf("%d MB for %v", used>>20, err)
	}
}

// Of texts beside the bundle that are no lists no more than the head is read.
func TestOtherTexts(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	for name, text := range map[string]string{"a.txt": "a.jpg\nmatches:\n", "b.txt": "", "c.txt": "# made by\n"} {
		file := filepath.Join(root, "bundle", name)
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o666), os.Truncate(file, 60<<20)); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("a_photo_of_another_capture.jpg\n", 3000)
	if err := os.WriteFile(filepath.Join(root, "bundle", "d.txt"), []byte(long), 0o666); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	runtime.ReadMemStats(&after)
	loadtest.CheckFixture(t, c, true)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d MB are taken", used>>20)
	}
}

func TestNotFinite(t *testing.T) {
	fixture := func() string { return loadtest.Fixture(t, "images") }
	for from, to := range map[string]string{"\n60.25 -0.08": "\n@ -0.08", "60.25 -0.080000000000000002": "60.25 @",
		"-0.22140732061784546": "@", "-2.4738633753705961": "@"} {
		loadtest.CheckNotFinite(t, fixture, "bundle/bundle.out", from, to, "bad-poses", loadtest.NotFinite)
	}
	loadtest.CheckNotFinite(t, fixture, "bundle/bundle.out", "\n0.5 0.25 -0.25", "\n0.5 @ -0.25", "bad-points",
		loadtest.NotFinite)
}

func TestDamage(t *testing.T) {
	loadtest.CheckDamage(t, loadtest.Fixture(t, "images"), "bundle/bundle.out")
}
