package captured

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

func TestPictureNames(t *testing.T) {
	var cams []scene.Camera
	for _, name := range []string{"a.jpg", "sub/b.c.JPG", "x.png", "X.jpg", "../../etc/passwd", "/abs.jpg", "plain",
		"sub/.jpg"} {
		cams = append(cams, scene.Camera{Name: name})
	}
	want := []string{"a.png", "sub/b.c.png", "x.png.png", "X.jpg.png", "etc/passwd.png", "abs.png", "plain.png",
		"sub/.jpg.png"}
	if got := PictureNames(cams); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestShiftedCamerasComeBack(t *testing.T) {
	c := scene.Camera{R: [9]float64{0, 0, 1, 1, 0, 0, 0, 1, 0}, T: [3]float64{1, 2, 3}}
	away := Shifted([]scene.Camera{c}, [3]float64{10, 20, 30})
	center, was := away[0].Center(), c.Center()
	for k, by := range []float64{10, 20, 30} {
		if center[k] != was[k]-by {
			t.Errorf("axis %d: the camera went from %g to %g, want %g less", k, was[k], center[k], by)
		}
	}
	if back := Shifted(away, [3]float64{-10, -20, -30}); back[0].T != c.T {
		t.Errorf("back at %v, want %v", back[0].T, c.T)
	}
}

// TestFindCameras finds cameras.json beside a model and where training puts it, and no other unless it guesses.
func TestFindCameras(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cameras.json")
	must.Do(t, os.WriteFile(file, nil, 0o666))
	for name, want := range map[string]bool{"model.ply": true, "point_cloud/iteration_7/point_cloud.ply": true,
		"a/b/model.ply": false, "a/model.ply": false} {
		model := filepath.Join(dir, filepath.FromSlash(name))
		if got := FindCameras(model, CamerasBeside[:1], false); (got == file) != want {
			t.Errorf("%s: %q", name, got)
		}
		if got := FindCameras(model, CamerasBeside, true); got != file {
			t.Errorf("%s: %q, want %s", name, got, file)
		}
	}
	own := filepath.Join(dir, "room.cameras.json")
	must.Do(t, os.WriteFile(own, nil, 0o666))
	for name, want := range map[string]string{"room.ply": own, "room.compressed.ply": own, "rooms.ply": file} {
		if got := FindCameras(filepath.Join(dir, name), CamerasBeside[:1], false); got != want {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
}
