package train

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/scene/synth"
)

// TestUnstoredCameras ends a run whose cameras cannot be stored: its scores would be of cameras that nothing has.
func TestUnstoredCameras(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, synth.Write(dir, synth.Options{Images: 4, Width: 32, Height: 24, Points: 8}))
	o := NewOptions()
	o.Load.Cameras, o.Out = filepath.Join(dir, "sparse", "0"), filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(o.Out, nil, 0o666))
	r := NewRun(o, cli.New(nil, io.Discard, io.Discard))
	for range 2 {
		if err := r.begin(); err == nil || !strings.Contains(err.Error(), "store the cameras that are used: make folder") {
			t.Errorf("error %v", err)
		}
	}
}
