//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/farm/store"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestOddResults reads results through a link to their folder, and beside links that lead elsewhere.
func TestOddResults(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	root := must.Get(store.Open(store.Options{URL: dir}))(t)
	must.Do(t, errors.Join(root.Put("job/t/out/MANIFEST.json", func(w io.Writer) error {
		_, err := io.WriteString(w, `{"version":1,"files":[]}`)
		return err
	}), os.Symlink(filepath.Join(dir, "job"), link), os.Symlink("/", filepath.Join(dir, "job", "best"))))
	for _, args := range [][]string{{"fsck", link}, {"gc", link}, {"artifacts", "ls", link}} {
		var said, errs strings.Builder
		code := run(append([]string{"farm"}, args...), &said, &errs)
		if code != fault.ExitOK || args[0] == "fsck" && !strings.Contains(errs.String(), "best is not read") {
			t.Errorf("%q: exit code %d: %s%s", args, code, said.String(), errs.String())
		}
	}
}
