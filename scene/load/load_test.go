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
		{"truncated cameras", badFile("cameras.bin", cut), loadtest.AnyModel(), []string{"cameras.bin", "ends too early"}, "cut short", nil},
		{"truncated images", badFile("images.bin", cut), loadtest.AnyModel(), []string{"images.bin", "ends too early"}, "cut short", nil},
		{"truncated points", badFile("points3D.bin", cut), loadtest.AnyModel(), []string{"points3D.bin", "ends too early"}, "cut short", nil},
		{"empty cameras", badFile("cameras.bin", func([]byte) []byte { return nil }), loadtest.AnyModel(), []string{"ends too early"}, "cut short", nil},
		{"2^40 cameras", badFile("cameras.bin", scenetest.Claim), loadtest.AnyModel(), []string{"1099511627776 cameras"}, "cut short", nil},
		{"2^40 images", badFile("images.bin", scenetest.Claim), loadtest.AnyModel(), []string{"1099511627776 images"}, "cut short", nil},
		{"2^40 points", badFile("points3D.bin", scenetest.Claim), loadtest.AnyModel(), []string{"1099511627776 points"}, "cut short", nil},
		{"2^40 2D points", badFile("images.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[len(b)-8:], 1<<40)
			return b
		}), loadtest.AnyModel(), []string{"1099511627776 2D points"}, "cut short", nil},
		{"track of 2^62", badFile("points3D.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[len(b)-8:], 1<<62)
			return b
		}), loadtest.AnyModel(), []string{"track elements"}, "cut short", nil},
		{"trailing bytes", badFile("cameras.bin", func(b []byte) []byte { return append(b, 1, 2) }), loadtest.AnyModel(), []string{"2 bytes follow"}, "damaged", nil},
		{"unknown model id", badFile("cameras.bin", func(b []byte) []byte {
			b[12] = 99
			return b
		}), loadtest.AnyModel(), []string{"model id 99"}, "damaged", nil},
		{"absurd size", badFile("cameras.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[16:], 1<<50)
			return b
		}), loadtest.AnyModel(), []string{"size"}, "damaged", nil},
		{"NaN focal", badFile("cameras.bin", func(b []byte) []byte { return floatsAt(b, 32, math.NaN()) }), loadtest.AnyModel(), []string{"not finite"}, "damaged", nil},
		{"negative focal", badFile("cameras.bin", func(b []byte) []byte { return floatsAt(b, 32, -1) }), loadtest.AnyModel(), []string{"focal", "p0.png"}, "damaged", nil},
	}
}

// badModels are captures whose model can be read but makes no sense.
func badModels() []badInput {
	strict := scene.LoadOptions{Model: scene.AnyModel, Strict: true} // others leave out the photo, see TestBadPoses
	return []badInput{
		{"missing points file", loadtest.Removed("sparse/0/points3D.bin"), loadtest.AnyModel(), []string{"points3D.bin"}, "cameras.bin, images.bin and points3D.bin", nil},
		{"NaN rotation", badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose, math.NaN()) }), strict, []string{`"p0.png"`, "rotation"}, "without this image", nil},
		{"zero rotation", badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose, 0, 0, 0, 0) }), strict, []string{`"p0.png"`, "rotation"}, "without this image", nil},
		{"NaN translation", badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose+32, math.NaN()) }), strict, []string{`"p0.png"`, "translation"}, "without this image", nil},
		{"infinite translation", badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose+48, math.Inf(1)) }), strict, []string{`"p0.png"`, "translation"}, "without this image", nil},
		{"unknown camera", badFile("images.bin", func(b []byte) []byte {
			b[imagePose+56] = 77
			return b
		}), loadtest.AnyModel(), []string{"camera 77"}, "different models", nil},
		{"no images", func(t *testing.T, root string) { loadtest.TinyModel(t, root, nil, scenetest.TinyPoints()) }, loadtest.AnyModel(), []string{"no registered images"}, "mapper", nil},
		{"two images", func(t *testing.T, root string) {
			loadtest.TinyModel(t, root, scenetest.TinyCameras()[:2], scenetest.TinyPoints())
		}, loadtest.AnyModel(), []string{"2 images are registered", "3"}, "overlap", nil},
		{"name outside", func(t *testing.T, root string) {
			cams := scenetest.TinyCameras()
			cams[2].Name = "../../x.png"
			loadtest.TinyModel(t, root, cams, scenetest.TinyPoints())
		}, loadtest.AnyModel(), []string{`"../../x.png"`}, "damaged", nil},
		{"names twice", func(t *testing.T, root string) {
			cams := scenetest.TinyCameras()
			cams[2].Name = cams[1].Name
			loadtest.TinyModel(t, root, cams, scenetest.TinyPoints())
		}, loadtest.AnyModel(), []string{"p1.png", "twice"}, "again", nil},
	}
}

// badFolders are captures in which something is missing or in another form.
func badFolders() []badInput {
	strict := scene.LoadOptions{Model: scene.AnyModel, Strict: true}
	return []badInput{
		{"missing folder", func(t *testing.T, root string) { loadtest.Removed(".")(t, root) }, loadtest.AnyModel(), []string{"no such folder"}, "spelling", nil},
		{"empty folder", loadtest.Removed("sparse", "images"), loadtest.AnyModel(), []string{"empty", "sparse/0", "distorted/sparse/0"}, "sparse/0", nil},
		{"no model", loadtest.Removed("sparse"), loadtest.AnyModel(), []string{"no COLMAP model", "colmap/sparse/0"}, "colmap feature_extractor", nil},
		{"no such model", nil, scene.LoadOptions{Model: 7}, []string{"no model 7"}, "0", fault.ErrUsage},
		{"bad downscale", nil, scene.LoadOptions{Model: scene.AnyModel, Downscale: 3}, []string{"3"}, "auto", fault.ErrUsage},
		{"all photos missing", loadtest.Removed("images/p0.png", "images/p1.png", "images/p2.png", "images/p3.png", "images/p4.png"), loadtest.AnyModel(), []string{"5 of 5 photos are missing", "p0.png"}, "--images", nil},
		{"no photo folder", loadtest.Removed("images"), loadtest.AnyModel(), []string{"no folder images"}, "--images", nil},
		{"images option", nil, scene.LoadOptions{Model: scene.AnyModel, Images: "nowhere"}, []string{"nowhere", "no such folder"}, "--images", nil},
		{"missing, strict", loadtest.Removed("images/p1.png"), strict, []string{"1 of 5 photos are missing", "p1.png"}, "--images", nil},
		{"broken, strict", func(t *testing.T, root string) {
			scenetest.Put(t, filepath.Join(root, "images", "p3.png"), []byte("no photo"))
		}, strict, []string{"1 of 5 photos cannot be read", "p3.png", "neither JPEG nor PNG"}, "--strict", nil},
		{"three broken", func(t *testing.T, root string) {
			for _, n := range []string{"p0.png", "p1.png", "p2.png"} {
				scenetest.Put(t, filepath.Join(root, "images", n), []byte("\x89PNG\r\n\x1a\n"))
			}
		}, loadtest.AnyModel(), []string{"3 of 5 photos cannot be read", "within its header"}, "again", nil},
		{"aspect", func(t *testing.T, root string) {
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p2.png"), 320, 320)
		}, loadtest.AnyModel(), []string{"p2.png", "320 x 320", "32 x 24"}, "cropped", nil},
		{"aspects", func(t *testing.T, root string) {
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p1.png"), 30, 30)
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p2.png"), 320, 320)
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p4.png"), 320, 320)
		}, loadtest.AnyModel(), []string{"p1.png", "30 x 30", "the same goes for 2 more: p2.png, p4.png"}, "cropped", nil},
		{"turned", func(t *testing.T, root string) {
			scenetest.WritePhoto(t, filepath.Join(root, "images", "p2.png"), 240, 320)
		}, loadtest.AnyModel(), []string{"240 x 320", "32 x 24"}, "orientation", nil},
		{"no such format", nil, scene.LoadOptions{Model: scene.AnyModel, Format: "nerf"}, []string{`"nerf"`}, "transforms", fault.ErrUsage},
		{"format not there", nil, scene.LoadOptions{Model: scene.AnyModel, Format: scene.FormatBlender}, []string{"no transforms_train.json"}, "--format", nil},
		{"colmap not there", func(t *testing.T, root string) {
			loadtest.Removed("sparse", "images")(t, root)
			scenetest.Put(t, filepath.Join(root, "transforms.json"), []byte("{}"))
		}, scene.LoadOptions{Model: scene.AnyModel, Format: scene.FormatColmap}, []string{"no COLMAP model"}, "sparse/0", nil},
		{"its folder of photos", nil, loadtest.AnyModel(), []string{"no cameras"}, "this folder is part of a capture: name that, ", nil},
		{"a video", func(t *testing.T, root string) {
			loadtest.Removed("sparse", "images")(t, root)
			scenetest.Put(t, filepath.Join(root, "my walk.MP4"), nil)
		}, loadtest.AnyModel(), []string{"no cameras"}, "walk.MP4' -vf fps=2", nil},
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
		scenetest.WritePhoto(t, filepath.Join(root, "images", filepath.FromSlash(name)), scenetest.TinyWidth, scenetest.TinyHeight)
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
		if err := colmap.Write(filepath.Join(root, "sparse", fmt.Sprint(n)), cams[:count], scenetest.TinyPoints()); err != nil {
			t.Fatal(err)
		}
	}
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	w, ok := scenetest.WarningOf(c, "other-models")
	if len(c.Cameras) != 5 || !ok || w.Count != 2 || !strings.Contains(w.String(), "--model") || !strings.Contains(w.String(), "sparse/10 (4 images)") {
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
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range colmap.ModelFiles {
			if err := os.Rename(filepath.Join(model, file+".bin"), filepath.Join(to, file+".bin")); err != nil {
				t.Fatal(err)
			}
		}
		model = to
		if c := loadtest.MustLoad(t, root, loadtest.AnyModel()); c.Model != to || len(c.Cameras) != scenetest.TinyPhotos {
			t.Errorf("%s: read %s", place, c.Model)
		}
	}
}

func TestBadPointsAreLeftOut(t *testing.T) {
	root := loadtest.TinyCapture(t)
	points := append(scenetest.TinyPoints(), scene.Point{Pos: [3]float64{math.NaN(), 0, 0}}, scene.Point{Pos: [3]float64{0, math.Inf(-1), 0}})
	loadtest.TinyModel(t, root, scenetest.TinyCameras(), points)
	c := loadtest.MustLoad(t, root, loadtest.AnyModel())
	if w, ok := scenetest.WarningOf(c, "bad-points"); !ok || w.Count != 2 || !reflect.DeepEqual(c.Points, scenetest.TinyPoints()) {
		t.Errorf("%v, %v", w, c.Points)
	}
}
