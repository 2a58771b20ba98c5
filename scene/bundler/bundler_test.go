package bundler_test

import (
	"os"
	"path/filepath"
	"runtime"
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
		"number":  {"60.25 ", "x ", `"x" is no number`},
		"count":   {"\n5 8", "\n4 8", ""},
		"huge":    {"\n5 8", "\n5 2000000000", "the file ends where a number is expected"},
	} {
		t.Run(name, func(t *testing.T) {
			loadtest.CheckEdited(t, loadtest.Fixture(t, "images"), "bundle/bundle.out", c.from, c.to, c.want)
		})
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

func TestDamage(t *testing.T) {
	loadtest.CheckDamage(t, loadtest.Fixture(t, "images"), "bundle/bundle.out")
}
