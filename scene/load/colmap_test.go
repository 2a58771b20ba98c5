package load_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/photo"
	"vksplat/scene/scenetest"
)

// Every model's record becomes a calibration, whatever is made of it later.
func TestCameraModels(t *testing.T) {
	for id, model := range scene.ColmapModels {
		t.Run(model.Name, func(t *testing.T) {
			root := loadtest.TinyCapture(t)
			loadtest.Edit(t, root, "cameras.bin", func([]byte) []byte { return scenetest.CameraOfModel(id) })
			c := &scene.Capture{Model: filepath.Join(root, "sparse", "0")}
			records := must.Get(colmap.Read(c))(t)
			k := records[0].Lens.Calibration(1, 1)
			if k.Model != scene.LensModel(id) || k.Width != scenetest.TinyWidth || k.Height != scenetest.TinyHeight ||
				len(k.Params) != model.Params || k.Params[model.Params-1] != float64(19+model.Params) {
				t.Errorf("calibration %+v", k)
			}
		})
	}
}

func TestPinholeModels(t *testing.T) {
	for id := range 2 {
		root := loadtest.TinyCapture(t)
		loadtest.Edit(t, root, "cameras.bin", func([]byte) []byte { return scenetest.CameraOfModel(id) })
		k := loadtest.MustLoad(t, root, loadtest.AnyModel()).Cameras[0]
		if got, want := [4]float64{k.Fx, k.Fy, k.Cx, k.Cy},
			[4]float64{20, 20 + float64(id), 21 + float64(id), 22 + float64(id)}; got != want {
			t.Errorf("intrinsics %v, want %v", got, want)
		}
	}
}

// Photos beside the model, or in a folder of any name, are found without being named; the usual folders go first.
func TestPhotosElsewhere(t *testing.T) {
	for _, folder := range []string{"", "photos", "pictures/deep"} {
		root := loadtest.TinyCapture(t)
		images := filepath.Join(root, "images")
		entries, err := os.ReadDir(images)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, folder)
		must.Do(t, os.MkdirAll(to, 0o777))
		for _, e := range entries {
			must.Do(t, os.Rename(filepath.Join(images, e.Name()), filepath.Join(to, e.Name())))
		}
		scenetest.WritePhoto(t, filepath.Join(root, "other", "unrelated.png"), 4, 3)
		must.Do(t, os.Remove(images))
		c, err := load.Capture(root, loadtest.AnyModel())
		if folder == "pictures/deep" { // which only a person can know
			scenetest.CheckRefusal(t, err, []string{"there is no folder images or input"}, "images DIR", nil)
			continue
		}
		if err != nil || len(c.Cameras) != len(entries) || filepath.Dir(c.Cameras[0].Path) != to {
			t.Errorf("%q: %v, %+v", folder, err, c)
		}
	}
}

// A camera with distortion that no image has is in nobody's way.
func TestUnusedCamera(t *testing.T) {
	root := loadtest.TinyCapture(t)
	loadtest.Edit(t, root, "cameras.bin", func(b []byte) []byte {
		binary.LittleEndian.PutUint64(b, 2)
		other := scenetest.CameraOfModel(4)[8:]
		other[0] = 9
		return append(b, other...)
	})
	loadtest.MustLoad(t, root, loadtest.AnyModel())
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"/a/b-c_d.e": "/a/b-c_d.e", "/a b/c": "'/a b/c'", "/a$b": "'/a$b'",
		"it's": `'it'\''s'`, "/ä": "/ä", "": "''"} {
		if got := photo.ShellWord(in); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// 2D points and tracks are passed over.
func TestTracksAreSkipped(t *testing.T) {
	le := binary.LittleEndian
	images := le.AppendUint64(nil, 2)
	for i := range 2 {
		images = le.AppendUint32(images, uint32(i+1))
		images = scenetest.AppendFloats(images, 1, 0, 0, 0, 1, 2, float64(i))
		images = le.AppendUint32(images, 1)
		images = append(images, "n\x00"...)
		images = le.AppendUint64(images, 3)
		images = append(images, make([]byte, 3*24)...)
	}
	views, err := colmap.ParseImages(colmap.NewCursor(bytes.NewReader(images), int64(len(images))))
	if err != nil || len(views) != 2 || views[1].T != [3]float64{1, 2, 1} || views[1].Name != "n" {
		t.Errorf("%+v, %v", views, err)
	}
	points := le.AppendUint64(nil, 2)
	for i := range 2 {
		points = le.AppendUint64(points, uint64(i))
		points = scenetest.AppendFloats(points, 1, 2, float64(i))
		points = append(points, 7, 8, 9)
		points = scenetest.AppendFloats(points, 0.5)
		points = le.AppendUint64(points, 4)
		points = append(points, make([]byte, 4*8)...)
	}
	got, bad, err := colmap.ParsePoints(colmap.NewCursor(bytes.NewReader(points), int64(len(points))))
	if err != nil || bad != 0 ||
		!slices.Equal(got, []scene.Point{{Pos: [3]float64{1, 2, 0}, Color: [3]uint8{7, 8, 9}},
			{Pos: [3]float64{1, 2, 1}, Color: [3]uint8{7, 8, 9}}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Every prefix of a file must be refused without a panic.
func TestEveryTruncation(t *testing.T) {
	root := loadtest.TinyCapture(t)
	for file, parse := range map[string]func(b []byte) error{
		"cameras.bin": func(b []byte) error {
			_, err := colmap.ParseCameras(colmap.NewCursor(bytes.NewReader(b), int64(len(b))))
			return err
		},
		"images.bin": func(b []byte) error {
			_, err := colmap.ParseImages(colmap.NewCursor(bytes.NewReader(b), int64(len(b))))
			return err
		},
		"points3D.bin": func(b []byte) error {
			_, _, err := colmap.ParsePoints(colmap.NewCursor(bytes.NewReader(b), int64(len(b))))
			return err
		},
	} {
		data := must.Get(os.ReadFile(filepath.Join(root, "sparse", "0", file)))(t)
		for n := range data {
			if parse(data[:n]) == nil {
				t.Errorf("%s: %d of %d bytes were accepted", file, n, len(data))
			}
		}
		if err := parse(data); err != nil {
			t.Error(err)
		}
	}
}

func TestRealCaptures(t *testing.T) {
	for _, test := range []struct {
		name           string
		images, points int
		width, height  int
		options        scene.LoadOptions
		notice         string // code of a warning
	}{
		{name: "fox", images: 50, points: 12479, options: loadtest.AnyModel(), notice: "other-format"},
		{name: "miku_plush", images: 97, points: 25784, options: loadtest.AnyModel()},
		{name: "monstree_exif", images: 23, points: 7896, options: loadtest.AnyModel()},
		{name: "chair_400", images: 125, points: 0, options: loadtest.AnyModel(), width: 400, height: 400},
		{name: "fern", images: 20, points: 0, options: loadtest.AnyModel(), width: 1008, height: 756},
		{name: "fox_pinhole", images: 50, points: 12479, options: loadtest.AnyModel(), width: 533, height: 948},
		{name: "bonsai_146", images: 146, points: 43802, options: loadtest.AnyModel(), width: 800, height: 533},
		{name: "miku_plush_pinhole_small", images: 97, points: 25784, options: loadtest.AnyModel(), width: 504,
			height: 378},
		{name: "desk", images: 29, points: 7562, options: loadtest.AnyModel(), width: 1600, height: 898,
			notice: "reduced-photos"},
		{name: "desk", images: 29, points: 7562, options: scene.LoadOptions{Model: scene.AnyModel, Downscale: 1},
			width: 1906, height: 1070},
		{name: "desk", images: 29, points: 7562, options: scene.LoadOptions{Model: scene.AnyModel, Downscale: 2},
			width: 953, height: 535},
		{name: "desk", images: 29, points: 7562, options: scene.LoadOptions{Model: scene.AnyModel, Images: "images_2"},
			width: 953, height: 535},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := test.options
			o.Strict = true
			c := loadtest.MustLoad(t, scenetest.SharedCapture(t, test.name), o)
			for _, w := range c.Warnings {
				t.Log(w)
			}
			cam := c.Cameras[0]
			if len(c.Cameras) != test.images || len(c.Points) != test.points || test.width != 0 &&
				(cam.Width != test.width || cam.Height != test.height) {
				t.Errorf("%d images of %d x %d, %d points", len(c.Cameras), cam.Width, cam.Height, len(c.Points))
			}
			if _, ok := scenetest.WarningOf(c, test.notice); test.notice != "" && !ok {
				t.Error("no notice", test.notice)
			}
			seen := pointsInView(c)
			if seen < 0.2 && len(c.Points) > 0 {
				t.Errorf("a camera sees only %.0f %% of the points on average", 100*seen)
			}
		})
	}
}

// pointsInView gives the share of pairs of camera and point that project into the
// image: poses that were read wrongly see next to nothing.
func pointsInView(c *scene.Capture) float64 {
	seen, all := 0, 0
	for _, cam := range c.Cameras {
		for i := 0; i < len(c.Points); i += 17 {
			p := cam.ToCamera(c.Points[i].Pos)
			x, y := cam.Fx*p[0]/p[2]+cam.Cx, cam.Fy*p[1]/p[2]+cam.Cy
			if p[2] > 0 && x >= 0 && y >= 0 && x < float64(cam.Width) && y < float64(cam.Height) {
				seen++
			}
			all++
		}
	}
	return float64(seen) / float64(all)
}

func TestRealBadCaptures(t *testing.T) {
	for _, test := range []struct{ name, want, hint string }{
		{"corrupt_truncated", "ends too early", "cut short"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := scenetest.SharedCapture(t, test.name)
			begin := time.Now()
			var err error
			grown := scenetest.HeapGrowth(func() { _, err = load.Capture(root, loadtest.AnyModel()) })
			if took := time.Since(begin); took > time.Second {
				t.Errorf("took %v", took)
			}
			if grown > 64<<20 {
				t.Errorf("allocated %d bytes", grown)
			}
			if err == nil {
				t.Fatal("it was accepted")
			}
			scenetest.CheckRefusal(t, err, strings.Split(test.want, "|"), test.hint, nil)
		})
	}
}

func TestTextModel(t *testing.T) {
	for name, eol := range map[string]string{"lf": "\n", "crlf": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			root := loadtest.TinyCapture(t)
			want := loadtest.MustLoad(t, root, loadtest.AnyModel())
			scenetest.TextModelOf(t, root, eol, scenetest.TinyCameras(), scenetest.TinyPoints())
			got := loadtest.MustLoad(t, root, loadtest.AnyModel())
			if !got.Text || !reflect.DeepEqual(got.Points, want.Points) || len(got.Warnings) > 0 {
				t.Errorf("points %v, warnings %v", got.Points, got.Warnings)
			}
			if !slices.Equal(got.Cameras, want.Cameras) {
				t.Errorf("cameras %v, want %v", got.Cameras, want.Cameras)
			}
		})
	}
}

func TestBinaryWinsOverText(t *testing.T) {
	root := loadtest.TinyCapture(t)
	dir := filepath.Join(root, "sparse", "0")
	for _, name := range colmap.ModelFiles {
		scenetest.Put(t, filepath.Join(dir, name+".txt"), []byte("no model"))
	}
	for _, name := range []string{"rigs.bin", "frames.bin", "rigs.txt", "frames.txt"} {
		scenetest.Put(t, filepath.Join(dir, name), []byte("anything"))
	}
	loadtest.MustLoad(t, root, loadtest.AnyModel())
	// A binary model that is not whole gives way to a text that is.
	loadtest.Removed("sparse/0/points3D.bin")(t, root)
	_, err := load.Capture(root, loadtest.AnyModel())
	scenetest.CheckRefusal(t, err, []string{"cameras.txt", "line 1"}, "damaged", nil)
}

func TestNotFinite(t *testing.T) {
	capture := func() string {
		root := loadtest.TinyCapture(t)
		scenetest.TextModelOf(t, root, "\n", scenetest.TinyCameras(), scenetest.TinyPoints())
		return root
	}
	for _, c := range []struct{ file, from, to, code string }{
		{"cameras.txt", "PINHOLE 32 24 30 ", "PINHOLE 32 24 @ ", "bad-poses"},
		{"cameras.txt", "PINHOLE 32 24 30 31 16 ", "PINHOLE 32 24 30 31 @ ", "bad-poses"},
		{"images.txt", " 0 0.2 4 1 p0", " @ 0.2 4 1 p0", "bad-poses"},
		{"images.txt", fmt.Sprintf("\n1 %v ", scenetest.TinyCameras()[0].Quat()[0]), "\n1 @ ", "bad-poses"},
		{"points3D.txt", "1 0.5 -0.25", "1 0.5 @", "bad-points"},
	} {
		loadtest.CheckNotFinite(t, capture, "sparse/0/"+c.file, c.from, c.to, c.code, loadtest.NotFinite)
	}
}
