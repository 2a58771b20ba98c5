package worker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/farm/store"
	"vksplat/scene"
)

// TestRootsComeAndGo takes roots away from a worker and gives them back.
func TestRootsComeAndGo(t *testing.T) {
	dir := t.TempDir()
	inputs, outputs, other := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "other")
	for _, d := range []string{inputs, outputs, other} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	roots := store.Roots{"inputs": {URL: inputs}, "outputs": {URL: outputs}, "other": {URL: other}}
	w := newRootWatch()
	look := func(root, want string, changes bool) {
		t.Helper()
		why, changed := w.look(roots, root)
		if !strings.Contains(why, want) || (want == "") != (why == "") || changed != changes || w.away(root) != why {
			t.Errorf("%s: %q, changed %v, away %q", root, why, changed, w.away(root))
		}
		if left, err := os.ReadDir(dir + "/out"); err == nil && len(left) > 0 {
			t.Error("the look left", left)
		}
	}
	for root := range roots {
		look(root, "", false)
	}
	gone := outputs + ".gone"
	if err := os.Rename(outputs, gone); err != nil {
		t.Fatal(err)
	}
	look("outputs", "no such folder", true)
	look("outputs", "no such folder", false)
	look("inputs", "", false)
	if list := w.list(); !slices.Equal(list, []string{"root outputs (there is no such folder)"}) {
		t.Error(list)
	}
	if err := os.Rename(gone, outputs); err != nil {
		t.Fatal(err)
	}
	look("outputs", "", true)
	// Another folder takes the place of one that has a mark, as where its share is unmounted.
	if err := os.WriteFile(filepath.Join(other, ".mounted"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	roots["other"] = store.Options{URL: other, Mark: ".mounted"}
	look("other", "", false)
	if err := errors.Join(os.Rename(other, other+".gone"), os.Mkdir(other, 0o777)); err != nil {
		t.Fatal(err)
	}
	look("other", "its mark .mounted is missing: the share is not mounted", true)
	if _, err := roots.Open("other"); !errors.Is(err, store.ErrSetup) || !strings.Contains(scene.Hint(err), "mount the share") {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(other), os.Rename(other+".gone", other)); err != nil {
		t.Fatal(err)
	}
	look("other", "", true)
	if os.Geteuid() != 0 { // who may write everywhere
		for _, d := range []string{inputs, other} {
			if err := os.Chmod(d, 0o555); err != nil {
				t.Fatal(err)
			}
		}
		w.writes("other")
		look("inputs", "", false)
		look("other", "permission denied", true)
	}
	w.began["inputs"] = time.Now().Add(-2 * rootSilent)
	if w.away("inputs") == "" || len(w.list()) == 0 {
		t.Error("a share that hangs is not noticed")
	}
}
