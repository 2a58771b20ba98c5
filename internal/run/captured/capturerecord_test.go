package captured

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

func FuzzCaptureRecord(f *testing.F) {
	f.Add([]byte(`{"scene": "/a", "downscale": 2, "held_out": ["a"], "background": [0, 0, 0]}`))
	f.Add([]byte(`{"scene": 3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, output.CaptureFile), data, 0o666); err != nil {
			t.Fatal(err)
		}
		if rec, err := ReadRecord(dir); err != nil && !errors.Is(err, fault.ErrData) || err == nil &&
			rec.Scene == "" {
			t.Errorf("%+v, %v", rec, err)
		}
	})
}
