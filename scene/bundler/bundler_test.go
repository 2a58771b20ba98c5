package bundler_test

import (
	"path/filepath"
	"testing"

	"vksplat/scene"
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

func TestDamage(t *testing.T) {
	loadtest.CheckDamage(t, loadtest.Fixture(t, "images"), "bundle/bundle.out")
}
