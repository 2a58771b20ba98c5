package captured

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

func FuzzCaptureRecord(f *testing.F) {
	f.Add([]byte(`{"scene": "/a", "downscale": 2, "held_out": ["a"], "background": [0, 0, 0]}`))
	f.Add([]byte(`{"scene": 3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, output.CaptureFile), data, 0o666))
		if rec, err := ReadRecord(dir); err != nil && !errors.Is(err, fault.ErrData) || err == nil &&
			rec.Scene == "" {
			t.Errorf("%+v, %v", rec, err)
		}
	})
}

// TestPlace wants the photos of a run where it had them, in its own folder, and nowhere where the record has no path:
// a farm's result names them otherwise.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"cap", "capture", "out/capture"} {
		must.Do(t, os.MkdirAll(name, 0o777))
	}
	own := filepath.Join("out", OwnFolder)
	for scene, want := range map[string]string{filepath.Join(dir, "cap"): filepath.Join(dir, "cap"), "cap": "",
		filepath.Join(dir, "gone", OwnFolder): own, OwnFolder: own, filepath.Join(dir, "gone"): ""} {
		got, err := (&Source{Scene: scene}).Place("out")
		if got != want || (err == nil) != (want != "") || err != nil && !strings.Contains(fault.Hint(err), "capture SCENE") {
			t.Errorf("%s: %q, %v; want %q", scene, got, err, want)
		}
	}
}
