package exported_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/exported"
	"vksplat/scene/scenetest"
)

// Names of other machines and folders mean photos below the capture's folder, and never one outside it.
func TestLocate(t *testing.T) {
	around := t.TempDir()
	root := filepath.Join(around, "scene")
	for _, file := range []string{"../outside.png", "a.png", "images/b.JPG", "other/deep/c.png", "masks/d.png",
		"images/d.e.png", "rgb/0.png"} {
		scenetest.WritePhoto(t, filepath.Join(root, file), 4, 3)
	}
	for name, want := range map[string]string{
		"a.png": "a.png", "A": "a.png", "b.jpg": "images/b.JPG", "b.tif": "images/b.JPG", "b": "images/b.JPG",
		`C:\data\images\b.jpg`: "images/b.JPG", "/x/other/deep/c.png": "other/deep/c.png", "deep/c.png": "other/deep/c.png",
		"../../a.png": "a.png", "d.e": "images/d.e.png", "0": "rgb/0.png",
		"../outside.png": "", "outside.png": "", "d.png": "", "none.png": "",
	} {
		c := &scene.Capture{Root: root}
		records := []scene.Record{{Cam: scene.Camera{Name: name}}}
		if err := exported.Locate(c, records, "rgb"); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		got, err := filepath.Rel(root, records[0].File)
		if want == "" {
			if err != nil || !filepath.IsLocal(got) || !filepath.IsLocal(records[0].Cam.Name) {
				t.Errorf("%q: %s, called %s", name, records[0].File, records[0].Cam.Name)
			}
			continue
		}
		if filepath.ToSlash(got) != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestDistinct(t *testing.T) {
	for _, names := range [][]string{{}, {""}, {" "}, {"a", ".."}, {"a/.."}, {"/"}, {"."}, {"a\x00"}, {"a", "b", "a"}} {
		var records []scene.Record
		for _, name := range names {
			records = append(records, scene.Record{Cam: scene.Camera{Name: name}})
		}
		if err := exported.Locate(&scene.Capture{Root: t.TempDir(), Model: "x.csv"}, records); err == nil {
			t.Errorf("%q are taken", names)
		}
	}
}

// Photos of one name in several folders stay apart, also if the names are those of another machine and some are gone.
func TestLocateFolders(t *testing.T) {
	for what, test := range map[string]struct{ files, names, want, called string }{
		"both": {"left/1.jpg right/1.jpg", "/data/left/1.jpg /data/right/1.jpg", "left/1.jpg right/1.jpg",
			"left/1.jpg right/1.jpg"},
		"local": {"left/1.jpg right/1.jpg", "left/1.jpg right/1.jpg", "left/1.jpg right/1.jpg", "left/1.jpg right/1.jpg"},
		"one":   {"left/1.jpg", "/data/right/1.jpg /data/left/1.jpg", "left/data/right/1.jpg left/1.jpg", ""},
		"other": {"left/1.png", "left/1.jpg right/1.jpg", "left/1.png left/1.jpg", "left/1.jpg right/1.jpg"},
		"flat":  {"images/1.jpg", "left/1.jpg right/1.jpg", "", ""},
		"case":  {"images/a.jpg", "A.jpg a.jpg", "", ""},
		"alone": {"images/1.jpg images/2.jpg", "/data/1.jpg /data/2.jpg", "images/1.jpg images/2.jpg", "1.jpg 2.jpg"},
	} {
		root := t.TempDir()
		for _, file := range strings.Fields(test.files) {
			scenetest.WritePhoto(t, filepath.Join(root, file), 4, 3)
		}
		var records []scene.Record
		for _, name := range strings.Fields(test.names) {
			records = append(records, scene.Record{Cam: scene.Camera{Name: name}})
		}
		err := exported.Locate(&scene.Capture{Root: root, Model: "x.csv"}, records)
		if (err != nil) != (test.want == "") {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil {
			continue
		}
		var files, called []string
		for _, r := range records {
			rel := must.Get(filepath.Rel(root, r.File))(t)
			files, called = append(files, filepath.ToSlash(rel)), append(called, r.Cam.Name)
		}
		if got := strings.Join(files, " "); got != test.want {
			t.Errorf("%s: %s, want %s", what, got, test.want)
		}
		if got := strings.Join(called, " "); test.called != "" && got != test.called {
			t.Errorf("%s: they are called %s", what, got)
		}
	}
}

func TestCloud(t *testing.T) {
	const head = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
	root := t.TempDir()
	scenetest.Put(t, filepath.Join(root, "a_splats.ply"), []byte(head+"property float f_dc_0\nend_header\n1 1 1 1\n"))
	scenetest.Put(t, filepath.Join(root, "b.PLY"), []byte(head+"end_header\n1 2 3\n"))
	c := &scene.Capture{Root: root}
	if err := exported.Cloud(c); err != nil || len(c.Points) != 1 || c.Points[0].Pos != [3]float64{1, 2, 3} ||
		len(c.Warnings) > 0 {
		t.Errorf("%v, %v, %v", c.Points, c.Warnings, err)
	}
	scenetest.Put(t, filepath.Join(root, "c.ply"), []byte(head+"end_header\n4 5 6\n"))
	if err := exported.Cloud(c); err != nil || c.Points[0].Pos != [3]float64{1, 2, 3} {
		t.Errorf("%v, %v", c.Points, err)
	}
	if w, ok := scenetest.WarningOf(c, "other-clouds"); !ok || w.Count != 1 {
		t.Errorf("%v", c.Warnings)
	}
}

func TestPoses(t *testing.T) {
	var cam scene.Camera
	if err := exported.Pose(&cam, [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, [3]float64{1, 2, 3}); err != nil ||
		cam.Center() != [3]float64{1, 2, 3} {
		t.Errorf("%+v, %v", cam, err)
	}
	for name, axes := range map[string][9]float64{"zero": {}, "nan": {math.NaN(), 0, 0, 0, 1, 0, 0, 0, 1},
		"mirror": {-1, 0, 0, 0, 1, 0, 0, 0, 1}, "skewed": {1, 1, 0, 0, 1, 0, 0, 0, 1}} {
		if err := exported.Pose(&cam, axes, [3]float64{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := exported.ToCamera(&cam, [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, [3]float64{math.Inf(1)}); err == nil {
		t.Error("a camera at infinity")
	}
}
