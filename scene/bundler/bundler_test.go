package bundler_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
)

func TestFormat(t *testing.T) {
	loadtest.Format{Name: scene.FormatBundler, Photos: "images", File: "bundle/bundle.out", Points: true,
		Refused: map[string]loadtest.Refusal{
			"version": {"v0.3", "v0.4", "version 0.3 is read"},
			"focal":   {"60.25 ", "-60.25 ", "has the focal length -60.25"},
			"number":  {"60.25 ", "x ", `"x" is not a number`},
			"count":   {"\n5 8", "\n4 8", ""},
			"huge":    {"\n5 8", "\n5 2000000000", "the file ends where a number is expected"},
		},
		NotFinite: map[string]string{"\n60.25 -0.08": "\n@ -0.08", "60.25 -0.080000000000000002": "60.25 @",
			"-0.22140732061784546": "@", "-2.4738633753705961": "@"},
		Spellings: loadtest.NotFinite,
	}.Check(t)
}

// The file may be named in place of the folder.
func TestFileNamed(t *testing.T) {
	file := filepath.Join(loadtest.Fixture(t, "images"), "bundle", "bundle.out")
	loadtest.CheckFixture(t, loadtest.MustLoad(t, file, loadtest.AnyModel()), true)
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
	data := must.Get(os.ReadFile(found))(t)
	text := strings.ReplaceAll(string(data), "./shot_", "/data/left/shot_")
	text = strings.ReplaceAll(text, "left/shot_4", "right/shot_3")
	must.Do(t, errors.Join(os.WriteFile(found, []byte(text), 0o666), os.Mkdir(filepath.Join(root, "right"), 0o777),
		os.Rename(filepath.Join(root, "left", "shot_4.png"), filepath.Join(root, "right", "shot_3.png"))))
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
	must.Do(t, os.WriteFile(file, []byte("# Bundle file v0.3"), 0o666))
	must.Do(t, os.Truncate(file, 64<<20))
	allocated := filetest.Allocated()
	_, err := load.Capture(root, loadtest.AnyModel())
	if used := allocated(); err == nil || used > 16<<20 {
		t.Errorf("%d MB for %v", used>>20, err)
	}
}

// Of texts beside the bundle that are no lists no more than the head is read.
func TestOtherTexts(t *testing.T) {
	root := loadtest.Fixture(t, "images")
	for name, text := range map[string]string{"a.txt": "a.jpg\nmatches:\n", "b.txt": "", "c.txt": "# made by\n"} {
		file := filepath.Join(root, "bundle", name)
		must.Do(t, errors.Join(os.WriteFile(file, []byte(text), 0o666), os.Truncate(file, 60<<20)))
	}
	long := strings.Repeat("a_photo_of_another_capture.jpg\n", 3000)
	must.Do(t, os.WriteFile(filepath.Join(root, "bundle", "d.txt"), []byte(long), 0o666))
	allocated := filetest.Allocated()
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	loadtest.CheckFixture(t, c, true)
	if used := allocated(); used > 16<<20 {
		t.Errorf("%d MB are taken", used>>20)
	}
}

func TestPointsNotFinite(t *testing.T) {
	loadtest.CheckNotFinite(t, func() string { return loadtest.Fixture(t, "images") }, "bundle/bundle.out",
		"\n0.5 0.25 -0.25", "\n0.5 @ -0.25", "bad-points", loadtest.NotFinite)
}
