package train

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// TestApart writes beside a capture and into it, with its photos in one folder, in its own, and in several whose common
// one holds everything.
func TestApart(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"one/images", "one/sparse/0", "one/out", "left", "right"} {
		must.Do(t, os.MkdirAll(filepath.Join(top, dir), 0o777))
	}
	for _, c := range []struct {
		images, model, out string
		refused            bool
	}{
		{"one/images", "one/sparse/0", "one/out", false},
		{"one/images", "one/sparse/0", "one/images2", false},
		{"one/images", "one/sparse/0", "out", false},
		{"one/images", "one/sparse/0", "one", true},
		{"one/images", "one/sparse/0", "one/images", true},
		{"one/images", "one/sparse/0", "one/images/deep", true},
		{"one/images", "one/sparse/0", "one/sparse/0/deep", true},
		{"one/images", "one/sparse/0", "one/sparse", true},
		{"one", "one/transforms.json", "one/out", false},
		{"one", "one/transforms.json", "one", true},
		{".", "one/transforms.json", "one/out", false}, // left and right hold the photos
		{".", "one/transforms.json", "out", false},
		{"left", "one/transforms.json", "left/out", true},
	} {
		at := func(name string) string { return filepath.Join(top, name) }
		r := NewRun(&Options{Out: at(c.out)}, &cli.Console{})
		r.Capture = &scene.Capture{Root: at("one"), Images: at(c.images), Model: at(c.model)}
		err := r.place.apart(r.Capture)
		if (err != nil) != c.refused || err != nil && !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
