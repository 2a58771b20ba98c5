package load_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

func TestRoundTrip(t *testing.T) {
	c := loadtest.MustLoad(t, loadtest.TinyCapture(t), loadtest.AnyModel())
	if len(c.Warnings) != 0 {
		t.Error("warnings:", c.Warnings)
	}
	if !reflect.DeepEqual(c.Points, scenetest.TinyPoints()) {
		t.Errorf("points %v", c.Points)
	}
	want := scenetest.TinyCameras()
	if len(c.Cameras) != len(want) {
		t.Fatalf("%d cameras", len(c.Cameras))
	}
	for i, cam := range c.Cameras {
		for k := range cam.R {
			if math.Abs(cam.R[k]-want[i].R[k]) > 1e-14 {
				t.Fatalf("%s: rotation %v, want %v", cam.Name, cam.R, want[i].R)
			}
		}
		cam.R, cam.Path = want[i].R, ""
		if cam != want[i] {
			t.Errorf("camera %+v, want %+v", cam, want[i])
		}
	}
}

func floatsAt(b []byte, at int, values ...float64) []byte {
	for i, v := range values {
		binary.LittleEndian.PutUint64(b[at+8*i:], math.Float64bits(v))
	}
	return b
}

// badInput is a capture that must be refused.
type badInput struct {
	name    string
	change  func(t *testing.T, root string)
	options scene.LoadOptions
	want    []string // in the error
	hint    string   // in the hint
	kind    error    // nil: ErrData
}

func badFile(file string, change func(b []byte) []byte) func(t *testing.T, root string) {
	return func(t *testing.T, root string) { loadtest.Edit(t, root, file, change) }
}

func cut(b []byte) []byte { return b[:len(b)-5] }

// imagePose is where the quaternion of the first record of images.bin begins.
const imagePose = 8 + 4

// badFiles are captures whose model's files are damaged.
func badFiles() []badInput {
	return []badInput{
		{name: "truncated cameras", change: badFile("cameras.bin", cut), options: loadtest.AnyModel(),
			want: []string{"cameras.bin", "ends too early"}, hint: "cut short", kind: nil},
		{name: "truncated images", change: badFile("images.bin", cut), options: loadtest.AnyModel(),
			want: []string{"images.bin", "ends too early"}, hint: "cut short", kind: nil},
		{name: "truncated points", change: badFile("points3D.bin", cut), options: loadtest.AnyModel(),
			want: []string{"points3D.bin", "ends too early"}, hint: "cut short", kind: nil},
		{name: "empty cameras", change: badFile("cameras.bin", func([]byte) []byte { return nil }),
			options: loadtest.AnyModel(), want: []string{"ends too early"}, hint: "cut short", kind: nil},
		{name: "2^40 cameras", change: badFile("cameras.bin", scenetest.Claim), options: loadtest.AnyModel(),
			want: []string{"1099511627776 cameras"}, hint: "cut short", kind: nil},
		{name: "2^40 images", change: badFile("images.bin", scenetest.Claim), options: loadtest.AnyModel(),
			want: []string{"1099511627776 images"}, hint: "cut short", kind: nil},
		{name: "2^40 points", change: badFile("points3D.bin", scenetest.Claim), options: loadtest.AnyModel(),
			want: []string{"1099511627776 points"}, hint: "cut short", kind: nil},
		{name: "2^40 2D points", change: badFile("images.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[len(b)-8:], 1<<40)
			return b
		}), options: loadtest.AnyModel(), want: []string{"1099511627776 2D points"}, hint: "cut short", kind: nil},
		{name: "track of 2^62", change: badFile("points3D.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[len(b)-8:], 1<<62)
			return b
		}), options: loadtest.AnyModel(), want: []string{"track elements"}, hint: "cut short", kind: nil},
		{name: "trailing bytes", change: badFile("cameras.bin", func(b []byte) []byte { return append(b, 1, 2) }),
			options: loadtest.AnyModel(), want: []string{"2 bytes follow"}, hint: "damaged", kind: nil},
		{name: "unknown model id", change: badFile("cameras.bin", func(b []byte) []byte {
			b[12] = 99
			return b
		}), options: loadtest.AnyModel(), want: []string{"model id 99"}, hint: "damaged", kind: nil},
		{name: "absurd size", change: badFile("cameras.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[16:], 1<<50)
			return b
		}), options: loadtest.AnyModel(), want: []string{"size"}, hint: "damaged", kind: nil},
		{name: "NaN focal", change: badFile("cameras.bin",
			func(b []byte) []byte { return floatsAt(b, 32, math.NaN()) }), options: loadtest.AnyModel(),
			want: []string{"p0.png", "more of the photos has parameters that are not finite"},
			hint: "fix the calibration in", kind: nil},
		{name: "negative focal", change: badFile("cameras.bin", func(b []byte) []byte { return floatsAt(b, 32, -1) }),
			options: loadtest.AnyModel(), want: []string{"focal", "p0.png"}, hint: "damaged", kind: nil},
	}
}

// badModels are captures whose model can be read but makes no sense.
func badModels() []badInput {
	strict := scene.LoadOptions{Model: scene.AnyModel, Strict: true} // others leave out the photo, see TestBadPoses
	return []badInput{
		{name: "missing points file", change: loadtest.Removed("sparse/0/points3D.bin"), options: loadtest.AnyModel(),
			want: []string{"points3D.bin"}, hint: "cameras.bin, images.bin and points3D.bin", kind: nil},
		{name: "NaN rotation",
			change:  badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose, math.NaN()) }),
			options: strict, want: []string{`"p0.png"`, "rotation"}, hint: "without this image", kind: nil},
		{name: "zero rotation",
			change:  badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose, 0, 0, 0, 0) }),
			options: strict, want: []string{`"p0.png"`, "rotation"}, hint: "without this image", kind: nil},
		{name: "NaN translation",
			change:  badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose+32, math.NaN()) }),
			options: strict, want: []string{`"p0.png"`, "translation"}, hint: "without this image", kind: nil},
		{name: "infinite translation",
			change:  badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose+48, math.Inf(1)) }),
			options: strict, want: []string{`"p0.png"`, "translation"}, hint: "without this image", kind: nil},
		{name: "unknown camera", change: badFile("images.bin", func(b []byte) []byte {
			b[imagePose+56] = 77
			return b
		}), options: loadtest.AnyModel(), want: []string{"camera 77"}, hint: "different models", kind: nil},
		{name: "no images", change: func(t *testing.T,
			root string) {
			loadtest.TinyModel(t, root, nil, scenetest.TinyPoints())
		}, options: loadtest.AnyModel(), want: []string{"no registered images"}, hint: "mapper", kind: nil},
		{name: "two images", change: func(t *testing.T, root string) {
			loadtest.TinyModel(t, root, scenetest.TinyCameras()[:2], scenetest.TinyPoints())
		}, options: loadtest.AnyModel(), want: []string{"2 images are registered", "3"}, hint: "overlap", kind: nil},
		{name: "name outside", change: func(t *testing.T, root string) {
			cams := scenetest.TinyCameras()
			for i := range cams {
				cams[i].Name = "../" + cams[i].Name + ".x.png"
				file := filepath.Join(root, cams[i].Name[3:])
				scenetest.WritePhoto(t, file, scenetest.TinyWidth, scenetest.TinyHeight)
			}
			loadtest.TinyModel(t, root, cams, scenetest.TinyPoints())
		}, options: loadtest.AnyModel(), want: []string{"5 of 5 photos cannot be found: ../p0.png.x.png"},
			hint: "of a name from another machine the longest end", kind: nil},
		{name: "no name", change: func(t *testing.T, root string) {
			cams := scenetest.TinyCameras()
			cams[2].Name = "a/../.."
			loadtest.TinyModel(t, root, cams, scenetest.TinyPoints())
		}, options: loadtest.AnyModel(), want: []string{`"a/../.." does not name a file`}, hint: "damaged", kind: nil},
		{name: "names twice", change: func(t *testing.T, root string) {
			cams := scenetest.TinyCameras()
			cams[2].Name = cams[1].Name
			loadtest.TinyModel(t, root, cams, scenetest.TinyPoints())
		}, options: loadtest.AnyModel(), want: []string{"p1.png", "twice"}, hint: "again", kind: nil},
	}
}

// badFolders are captures in which something is missing or in another form.
func badFolders() []badInput {
	strict := scene.LoadOptions{Model: scene.AnyModel, Strict: true}
	return []badInput{
		{name: "missing folder", change: func(t *testing.T, root string) { loadtest.Removed(".")(t, root) },
			options: loadtest.AnyModel(), want: []string{"no such folder"}, hint: "spelling", kind: nil},
		{name: "empty folder", change: loadtest.Removed("sparse", "images"), options: loadtest.AnyModel(),
			want: []string{"empty", "sparse/0", "distorted/sparse/0"}, hint: "sparse/0", kind: nil},
		{name: "no model", change: loadtest.Removed("sparse"), options: loadtest.AnyModel(),
			want: []string{"no COLMAP model", "colmap/sparse/0"}, hint: "vksplat capture", kind: nil},
		{name: "no such model", change: nil, options: scene.LoadOptions{Model: 7}, want: []string{"no model 7"},
			hint: "0", kind: fault.ErrUsage},
		{name: "bad downscale", change: nil, options: scene.LoadOptions{Model: scene.AnyModel, Downscale: 3},
			want: []string{"3"}, hint: "auto", kind: fault.ErrUsage},
		{name: "all photos missing",
			change: loadtest.Removed("images/p0.png", "images/p1.png", "images/p2.png", "images/p3.png",
				"images/p4.png"), options: loadtest.AnyModel(), want: []string{"5 of 5 photos cannot be found", "p0.png"},
			hint: "images", kind: nil},
		{name: "no photo folder", change: loadtest.Removed("images"), options: loadtest.AnyModel(),
			want: []string{"no folder images"}, hint: "images", kind: nil},
		{name: "images option", change: nil, options: scene.LoadOptions{Model: scene.AnyModel, Images: "nowhere"},
			want: []string{"nowhere", "no such folder"}, hint: "images", kind: nil},
		{name: "missing, strict", change: loadtest.Removed("images/p1.png"), options: strict,
			want: []string{"1 of 5 photos cannot be found", "p1.png"}, hint: "leave out", kind: nil},
		{name: "broken, strict", change: func(t *testing.T, root string) {
			scenetest.Put(t, filepath.Join(root, "images", "p3.png"), []byte("no photo"))
		}, options: strict, want: []string{"1 of 5 photos cannot be read", "p3.png", "neither JPEG nor PNG"},
			hint: "strict", kind: nil},
		{name: "three broken", change: func(t *testing.T, root string) {
			for _, n := range []string{"p0.png", "p1.png", "p2.png"} {
				scenetest.Put(t, filepath.Join(root, "images", n), []byte("\x89PNG\r\n\x1a\n"))
			}
		}, options: loadtest.AnyModel(), want: []string{"3 of 5 photos cannot be read", "within its header"},
			hint: "again", kind: nil},
		{name: "aspect", change: func(t *testing.T, root string) {
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p2.png"), 320, 320)
		}, options: loadtest.AnyModel(), want: []string{"p2.png", "320 x 320", "32 x 24"}, hint: "cropped", kind: nil},
		{name: "aspects", change: func(t *testing.T, root string) {
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p1.png"), 30, 30)
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p2.png"), 320, 320)
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p4.png"), 320, 320)
		}, options: loadtest.AnyModel(),
			want: []string{"p1.png", "30 x 30", "the same goes for 2 more: p2.png, p4.png"}, hint: "cropped",
			kind: nil},
		{name: "turned", change: func(t *testing.T, root string) {
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p2.png"), 240, 320)
		}, options: loadtest.AnyModel(), want: []string{"240 x 320", "32 x 24"}, hint: "orientation", kind: nil},
		{name: "no such format", change: nil, options: scene.LoadOptions{Model: scene.AnyModel, Format: "nerf"},
			want: []string{`"nerf"`}, hint: "transforms", kind: fault.ErrUsage},
		{name: "format not there", change: nil, options: scene.LoadOptions{Model: scene.AnyModel,
			Format: scene.FormatBlender}, want: []string{"no transforms_train.json"}, hint: "format", kind: nil},
		{name: "colmap not there", change: func(t *testing.T, root string) {
			loadtest.Removed("sparse", "images")(t, root)
			scenetest.Put(t, filepath.Join(root, "transforms.json"), []byte("{}"))
		}, options: scene.LoadOptions{Model: scene.AnyModel, Format: scene.FormatColmap},
			want: []string{"no COLMAP model"}, hint: "sparse/0", kind: nil},
		{name: "its folder of photos", change: nil, options: loadtest.AnyModel(), want: []string{"no cameras"},
			hint: "this folder is part of a capture: name that, ", kind: nil},
		{name: "a video", change: func(t *testing.T, root string) {
			loadtest.Removed("sparse", "images")(t, root)
			scenetest.Put(t, filepath.Join(root, "my walk.MP4"), nil)
		}, options: loadtest.AnyModel(), want: []string{"no cameras"}, hint: "walk.MP4' -o ", kind: nil},
	}
}

func TestBadInput(t *testing.T) {
	for _, test := range slices.Concat(badFiles(), badModels(), badFolders()) {
		t.Run(test.name, func(t *testing.T) {
			root := loadtest.TinyCapture(t)
			if test.change != nil {
				test.change(t, root)
			}
			if test.name == "its folder of photos" {
				root = filepath.Join(root, "images")
			}
			begin := time.Now()
			c, err := load.Capture(root, test.options)
			if took := time.Since(begin); took > time.Second {
				t.Errorf("took %v", took)
			}
			if err == nil || c != nil {
				t.Fatal("it was accepted")
			}
			scenetest.CheckRefusal(t, err, test.want, test.hint, test.kind)
		})
	}
}

func TestFileAsCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ply")
	scenetest.Put(t, path, []byte("ply"))
	_, err := load.Capture(path, loadtest.AnyModel())
	scenetest.CheckRefusal(t, err, []string{"this is a file"}, "sparse/0", nil)
}

func TestClaimedCountsAllocateNothing(t *testing.T) {
	for _, file := range []string{"cameras.bin", "images.bin", "points3D.bin"} {
		root := loadtest.TinyCapture(t)
		loadtest.Edit(t, root, file, scenetest.Claim)
		if n := scenetest.HeapGrowth(func() { _, _ = load.Capture(root, loadtest.AnyModel()) }); n > 1<<20 {
			t.Errorf("%s: %d bytes allocated for a file of a few hundred", file, n)
		}
	}
}

func TestPhotosLeftOut(t *testing.T) {
	root := loadtest.TinyCapture(t)
	loadtest.Removed("images/p1.png")(t, root)
	scenetest.Put(t, filepath.Join(root, "images", "p3.png"), nil)
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if len(c.Cameras) != 3 {
		t.Fatalf("%d cameras", len(c.Cameras))
	}
	for code, name := range map[string]string{"missing-photos": "p1.png", "broken-photos": "p3.png"} {
		if w, ok := scenetest.WarningOf(c, code); !ok || w.Count != 1 || !slices.Equal(w.Names, []string{name}) {
			t.Errorf("%s: %+v", code, w)
		}
	}
}

// TestDeniedPhotos wants advice on permissions for photos that may not be read.
func TestDeniedPhotos(t *testing.T) {
	root := loadtest.TinyCapture(t)
	file := filepath.Join(root, "images", "p3.png")
	must.Do(t, os.Chmod(file, 0))
	if f, err := os.Open(file); err == nil {
		f.Close()
		t.Skip("this user reads everything")
	}
	w, _ := scenetest.WarningOf(loadtest.MustLoad(t, root, loadtest.AnyModel()), "broken-photos")
	if !strings.Contains(w.Remedy, "readable") {
		t.Errorf("remedy %q", w.Remedy)
	}
}

func TestWarningShowsFiveNames(t *testing.T) {
	root := loadtest.TinyCapture(t)
	for i := range 9 {
		scenetest.WritePhoto(t, filepath.Join(root, "images", fmt.Sprintf("x%d.png", i)), 8, 8)
	}
	scenetest.Put(t, filepath.Join(root, "images", "notes.txt"), nil)
	scenetest.Put(t, filepath.Join(root, "images", "._p1.png"), nil)
	w, ok := scenetest.WarningOf(loadtest.MustLoad(t, root, loadtest.AnyModel()), "unregistered-photos")
	if !ok || w.Count != 9 || len(w.Names) != 5 || !strings.HasSuffix(w.String(), "x4.png and 4 more") {
		t.Errorf("%+v: %s", w, w)
	}
}

func TestPhotoNames(t *testing.T) {
	root := t.TempDir()
	cams := scenetest.TinyCameras()
	for i, name := range []string{`left\a.png`, "right/A.JPG", "b.jpg", "B.png", "./c.jpeg"} {
		cams[i].Name = name
	}
	loadtest.TinyModel(t, root, cams, scenetest.TinyPoints())
	for _, name := range []string{"left/a.png", "Right/a.jpg", "b.jpg", "b.PNG", "C.png"} {
		scenetest.WritePhoto(t, filepath.Join(root, "images", filepath.FromSlash(name)), scenetest.TinyWidth,
			scenetest.TinyHeight)
	}
	c := loadtest.MustLoad(t, root, scene.LoadOptions{Model: scene.AnyModel, Strict: true})
	var got []string
	for _, cam := range c.Cameras {
		rel, _ := filepath.Rel(filepath.Join(root, "images"), cam.Path)
		got = append(got, cam.Name+"="+filepath.ToSlash(rel))
	}
	want := []string{"B.png=b.PNG", "b.jpg=b.jpg", "c.jpeg=C.png", "left/a.png=left/a.png", "right/A.JPG=Right/a.jpg"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestModelChoice(t *testing.T) {
	root := loadtest.TinyCapture(t)
	cams := scenetest.TinyCameras()
	for n, count := range map[int]int{0: 3, 1: 5, 10: 4} {
		must.Do(t, colmap.Write(filepath.Join(root, "sparse", fmt.Sprint(n)), cams[:count],
			scenetest.TinyPoints()))
	}
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	w, ok := scenetest.WarningOf(c, "other-models")
	if len(c.Cameras) != 5 || !ok || w.Count != 2 || !strings.Contains(w.String(), "model") ||
		!strings.Contains(w.String(), "sparse/10 (4 images)") {
		t.Errorf("%d cameras, warning %s", len(c.Cameras), w)
	}
	c = loadtest.MustLoad(t, root, scene.LoadOptions{Model: 10})
	if len(c.Cameras) != 4 || filepath.Base(c.Model) != "10" {
		t.Errorf("%d cameras of %s", len(c.Cameras), c.Model)
	}
}

func TestModelPlaces(t *testing.T) {
	root := loadtest.TinyCapture(t)
	model := filepath.Join(root, "sparse", "0")
	// Each later place is found once the earlier ones are gone.
	for _, place := range []string{"sparse", "colmap/sparse/0", "distorted/sparse/0", "."} {
		to := filepath.Join(root, filepath.FromSlash(place))
		must.Do(t, os.MkdirAll(to, 0o755))
		for _, file := range colmap.ModelFiles {
			must.Do(t, os.Rename(filepath.Join(model, file+".bin"), filepath.Join(to, file+".bin")))
		}
		model = to
		if c := loadtest.MustLoad(t, root, loadtest.AnyModel()); c.Model != to ||
			len(c.Cameras) != scenetest.TinyPhotos {
			t.Errorf("%s: read %s", place, c.Model)
		}
	}
}

func TestBadPointsAreLeftOut(t *testing.T) {
	root := loadtest.TinyCapture(t)
	points := append(scenetest.TinyPoints(), scene.Point{Pos: [3]float64{math.NaN(), 0, 0}},
		scene.Point{Pos: [3]float64{0, math.Inf(-1), 0}})
	loadtest.TinyModel(t, root, scenetest.TinyCameras(), points)
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if w, ok := scenetest.WarningOf(c, "bad-points"); !ok || w.Count != 2 ||
		!reflect.DeepEqual(c.Points, scenetest.TinyPoints()) {
		t.Errorf("%v, %v", w, c.Points)
	}
}
