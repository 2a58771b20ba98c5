package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/scene"
	"vksplat/scene/ply"
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
	if err := ply.Write(model, s, ply.Meta{}); err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	var stdout, stderr bytes.Buffer
	code := run([]string{"view", model, "--no-open", "--port", port}, &stdout, &stderr)
	if code != fault.ExitTryAgain || stdout.Len() > 0 || !strings.Contains(stderr.String(), "127.0.0.1:"+port+
		": address already in use") || !strings.Contains(stderr.String(), "hint: name another port") {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
}

// TestFindCameras finds cameras.json beside a model and where training puts it, and no other unless it guesses.
func TestFindCameras(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cameras.json")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"model.ply": true, "point_cloud/iteration_7/point_cloud.ply": true,
		"a/b/model.ply": false, "a/model.ply": false} {
		model := filepath.Join(dir, filepath.FromSlash(name))
		if got := captured.FindCameras(model, captured.CamerasBeside[:1], false); (got == file) != want {
			t.Errorf("%s: %q", name, got)
		}
		if got := captured.FindCameras(model, captured.CamerasBeside, true); got != file {
			t.Errorf("%s: %q, want %s", name, got, file)
		}
	}
}
