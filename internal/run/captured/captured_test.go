package captured

import (
	"slices"
	"testing"

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
