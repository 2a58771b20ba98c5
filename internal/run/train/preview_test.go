package train

import (
	"path/filepath"
	"testing"
)

func TestPreviewFlags(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		PreviewOptions
		good bool
	}{
		{PreviewOptions{"", defaultPreviewEvery}, true},
		{PreviewOptions{filepath.Join(dir, "a.jpg"), 1}, true},
		{PreviewOptions{"", 5}, false},
		{PreviewOptions{filepath.Join(dir, "a.jpg"), 0}, false},
		{PreviewOptions{filepath.Join(dir, "a.jpg"), -1}, false},
		{PreviewOptions{filepath.Join(dir, "none", "a.jpg"), 30}, false},
		{PreviewOptions{dir, 30}, false},
	} {
		if err := c.resolve(false); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.PreviewOptions, err)
		}
	}
}
