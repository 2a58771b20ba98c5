package main

import (
	"bytes"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vksplat/scene"
)

// TestViewPortInUse wants a port that is taken told at once, with its number and a remedy.
func TestViewPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the test is over
	model := filepath.Join(t.TempDir(), "model.ply")
	s := scene.NewSplats(1, 0)
	s.Quats[0] = 1
	if err := scene.WritePLY(model, s, scene.PLYMeta{}); err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	var stdout, stderr bytes.Buffer
	code := run([]string{"view", model, "--no-open", "--port", port}, &stdout, &stderr)
	if code != exitRetry || stdout.Len() > 0 || !strings.Contains(stderr.String(), "127.0.0.1:"+port+": address already in use") || !strings.Contains(stderr.String(), "hint: leave out --port") {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
}

// TestViewCameras finds cameras.json beside a model and where training puts it, and no other.
func TestViewCameras(t *testing.T) {
	dir := t.TempDir()
	a := &app{}
	cam := scene.Camera{Name: "a.png", Width: 4, Height: 3, Fx: 4, Fy: 4, Cx: 2, Cy: 1.5, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}}
	if err := scene.WriteCameras(filepath.Join(dir, "cameras.json"), []scene.Camera{cam}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"model.ply": 1, "point_cloud/iteration_7/point_cloud.ply": 1, "a/b/model.ply": 0, "a/model.ply": 0} {
		got, err := a.viewCameras(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || len(got) != want {
			t.Errorf("%s: %d cameras, %v; want %d", name, len(got), err, want)
		}
	}
}
