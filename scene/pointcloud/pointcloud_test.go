package pointcloud

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// Points that are not finite are left out, and the notes count them.
func TestNonFinite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ply")
	text := "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n" +
		"end_header\n1 2 3\n1 nan(snan) 3\n4 5 1.#INF\n"
	must.Do(t, os.WriteFile(path, []byte(text), 0o666))
	points, notes, err := Read(path)
	if err != nil || len(points) != 1 || len(notes) != 1 || !strings.Contains(notes[0], "2 of 3 points are left out") {
		t.Errorf("%v, %q, %v", points, notes, err)
	}
}
