package load_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"vksplat/scene"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/photo"
	"vksplat/scene/scenetest"
)

// sizedCapture writes a tiny capture calibrated for cw x ch with photos of w x h.
func sizedCapture(t *testing.T, cw, ch, w, h int) string {
	t.Helper()
	root := t.TempDir()
	cams := scenetest.TinyCameras()
	for i := range cams {
		cams[i].Width, cams[i].Height = cw, ch
		cams[i].Fx, cams[i].Fy, cams[i].Cx, cams[i].Cy = 1000, 1100, 500, 400
		scenetest.WritePhoto(t, filepath.Join(root, "images", cams[i].Name), w, h)
	}
	loadtest.TinyModel(t, root, cams, scenetest.TinyPoints())
	return root
}

func TestSizes(t *testing.T) {
	tests := []struct {
		name           string
		cw, ch, w, h   int // calibration and photo
		downscale      int
		width, height  int
		fx, fy, cx, cy float64
		notice         bool
	}{
		{"as calibrated", 1000, 750, 1000, 750, 0, 1000, 750, 1000, 1100, 500, 400, false},
		{"half, odd", 1000, 751, 500, 375, 0, 500, 375, 500, 1100 * 375. / 751, 250, 400 * 375. / 751, false},
		{"larger photo", 1000, 750, 1200, 900, 0, 1200, 900, 1200, 1320, 600, 480, false},
		{"auto, 1600 stays", 1600, 1200, 1600, 1200, 0, 1600, 1200, 1000, 1100, 500, 400, false},
		{"auto reduces", 2000, 1501, 2000, 1501, 0, 1600, 1200, 800, 1100 * 1200. / 1501, 400, 400 * 1200. / 1501,
			true},
		{"auto, tall photos stay", 1000, 1700, 1000, 1700, 0, 1000, 1700, 1000, 1100, 500, 400, false},
		{"1 keeps", 2000, 1501, 2000, 1501, 1, 2000, 1501, 1000, 1100, 500, 400, false},
		{"2", 1001, 750, 1001, 750, 2, 500, 375, 1000 * 500. / 1001, 550, 500 * 500. / 1001, 200, false},
		{"8", 1000, 752, 1000, 752, 8, 125, 94, 125, 137.5, 62.5, 50, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := sizedCapture(t, test.cw, test.ch, test.w, test.h)
			c := loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, Downscale: test.downscale})
			cam := c.Cameras[0]
			got := fmt.Sprintf("%d %d %.9g %.9g %.9g %.9g", cam.Width, cam.Height, cam.Fx, cam.Fy, cam.Cx, cam.Cy)
			want := fmt.Sprintf("%d %d %.9g %.9g %.9g %.9g", test.width, test.height, test.fx, test.fy, test.cx,
				test.cy)
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if w, notice := scenetest.WarningOf(c, "reduced-photos"); notice != test.notice {
				t.Errorf("notice %q", w)
			}
		})
	}
}

func TestReducedFolder(t *testing.T) {
	root := sizedCapture(t, 1000, 750, 1000, 750)
	for i := range scenetest.TinyPhotos - 1 {
		scenetest.WritePhoto(t, filepath.Join(root, "images_4", fmt.Sprintf("p%d.png", i)), 250, 188)
	}
	c := loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, Downscale: 4, Strict: true})
	for i, cam := range c.Cameras {
		// The last photo is only there in full size.
		folder, height := "images_4", 188
		if i == scenetest.TinyPhotos-1 {
			folder = "images"
		}
		if cam.Width != 250 || cam.Height != height || filepath.Base(filepath.Dir(cam.Path)) != folder ||
			!scenetest.Near(cam.Fy, 1100*float64(height)/750, 1e-12) {
			t.Errorf("%+v", cam)
		}
	}
	// The folder is taken as it is when it is asked for by name.
	if c = loadtest.MustLoad(t, root,
		scene.LoadOptions{Model: scene.AnyModel, Images: "images_4"}); len(c.Cameras) != 4 ||
		c.Cameras[0].Width != 250 {
		t.Errorf("%d cameras, %+v", len(c.Cameras), c.Cameras[0])
	}
	// A reduction on top of it is one of its photos.
	if c = loadtest.MustLoad(t, root,
		scene.LoadOptions{Model: scene.AnyModel, Images: filepath.Join(root, "images_4"),
			Downscale: 2}); c.Cameras[0].Width != 125 {
		t.Errorf("%+v", c.Cameras[0])
	}
}

func TestSameAspect(t *testing.T) {
	for _, test := range []struct {
		w, h, cw, ch int
		want         bool
	}{
		{100, 75, 400, 300, true},
		{101, 75, 400, 300, true}, // 1.3 %, yet one pixel
		{102, 75, 400, 300, true},
		{103, 75, 400, 300, false},
		{1009, 750, 4000, 3000, true}, // 0.9 %
		{1012, 750, 4000, 3000, false},
		{748, 1000, 3000, 4000, true},
		{1000, 750, 750, 1000, false},
	} {
		if got := photo.SameAspect(test.w, test.h, test.cw, test.ch); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
