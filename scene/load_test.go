package scene

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// The photos of a tiny capture.
const (
	tinyPhotos = 5
	tinyWidth  = 32
	tinyHeight = 24
)

// tinyCameras stand on a circle and look at its centre, more or less.
func tinyCameras() []Camera {
	cams := make([]Camera, tinyPhotos)
	for i := range cams {
		angle := 2 * math.Pi * float64(i) / tinyPhotos
		r, _ := rotationFromQuat([4]float64{math.Cos(angle / 2), 0.1, math.Sin(angle / 2), 0.05})
		cams[i] = Camera{Name: fmt.Sprintf("p%d.png", i), Width: tinyWidth, Height: tinyHeight,
			Fx: 30, Fy: 31, Cx: 16, Cy: 12.5, R: r, T: [3]float64{0.1 * float64(i), 0.2, 4}}
	}
	return cams
}

func tinyPoints() []Point {
	return []Point{
		{Pos: [3]float64{0, 0, 0}, Color: [3]uint8{255, 1, 2}},
		{Pos: [3]float64{1, 0.5, -0.25}, Color: [3]uint8{3, 4, 5}},
		{Pos: [3]float64{-1, 0.125, 3}, Color: [3]uint8{6, 7, 8}},
	}
}

func writePhoto(t testing.TB, path string, width, height int) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	put(t, path, b.Bytes())
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// tinyCapture writes a capture and returns its folder.
func tinyCapture(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	tinyModel(t, root, tinyCameras(), tinyPoints())
	for _, c := range tinyCameras() {
		writePhoto(t, filepath.Join(root, "images", c.Name), tinyWidth, tinyHeight)
	}
	return root
}

func tinyModel(t testing.TB, root string, cams []Camera, points []Point) {
	t.Helper()
	if err := WriteColmap(filepath.Join(root, "sparse", "0"), cams, points); err != nil {
		t.Fatal(err)
	}
}

// edit rewrites a file of the capture's model.
func edit(t testing.TB, root, name string, change func(b []byte) []byte) {
	t.Helper()
	path := filepath.Join(root, "sparse", "0", name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, change(b))
}

func anyModel() LoadOptions { return LoadOptions{Model: AnyModel} }

func mustLoad(t testing.TB, root string, o LoadOptions) *Capture {
	t.Helper()
	c, err := Load(root, o)
	if err != nil {
		t.Fatal(err, Hint(err))
	}
	return c
}

func (c *Capture) warning(code string) (Warning, bool) {
	i := slices.IndexFunc(c.Warnings, func(w Warning) bool { return w.Code == code })
	if i < 0 {
		return Warning{}, false
	}
	return c.Warnings[i], true
}

func TestRoundTrip(t *testing.T) {
	c := mustLoad(t, tinyCapture(t), anyModel())
	if len(c.Warnings) != 0 {
		t.Error("warnings:", c.Warnings)
	}
	if !reflect.DeepEqual(c.Points, tinyPoints()) {
		t.Errorf("points %v", c.Points)
	}
	want := tinyCameras()
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
	options LoadOptions
	want    []string // in the error
	hint    string   // in the hint
	kind    error    // nil: ErrData
}

func badFile(file string, change func(b []byte) []byte) func(t *testing.T, root string) {
	return func(t *testing.T, root string) { edit(t, root, file, change) }
}

func cut(b []byte) []byte { return b[:len(b)-5] }

func claim(b []byte) []byte {
	binary.LittleEndian.PutUint64(b, 1<<40)
	return b
}

func removed(paths ...string) func(t *testing.T, root string) {
	return func(t *testing.T, root string) {
		for _, p := range paths {
			if err := os.RemoveAll(filepath.Join(root, filepath.FromSlash(p))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// imagePose is where the quaternion of the first record of images.bin begins.
const imagePose = 8 + 4

// badFiles are captures whose model's files are damaged.
func badFiles() []badInput {
	return []badInput{
		{"truncated cameras", badFile("cameras.bin", cut), anyModel(), []string{"cameras.bin", "ends too early"}, "cut short", nil},
		{"truncated images", badFile("images.bin", cut), anyModel(), []string{"images.bin", "ends too early"}, "cut short", nil},
		{"truncated points", badFile("points3D.bin", cut), anyModel(), []string{"points3D.bin", "ends too early"}, "cut short", nil},
		{"empty cameras", badFile("cameras.bin", func([]byte) []byte { return nil }), anyModel(), []string{"ends too early"}, "cut short", nil},
		{"2^40 cameras", badFile("cameras.bin", claim), anyModel(), []string{"1099511627776 cameras"}, "cut short", nil},
		{"2^40 images", badFile("images.bin", claim), anyModel(), []string{"1099511627776 images"}, "cut short", nil},
		{"2^40 points", badFile("points3D.bin", claim), anyModel(), []string{"1099511627776 points"}, "cut short", nil},
		{"2^40 2D points", badFile("images.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[len(b)-8:], 1<<40)
			return b
		}), anyModel(), []string{"1099511627776 2D points"}, "cut short", nil},
		{"track of 2^62", badFile("points3D.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[len(b)-8:], 1<<62)
			return b
		}), anyModel(), []string{"track elements"}, "cut short", nil},
		{"trailing bytes", badFile("cameras.bin", func(b []byte) []byte { return append(b, 1, 2) }), anyModel(), []string{"2 bytes follow"}, "damaged", nil},
		{"unknown model id", badFile("cameras.bin", func(b []byte) []byte {
			b[12] = 99
			return b
		}), anyModel(), []string{"model id 99"}, "damaged", nil},
		{"absurd size", badFile("cameras.bin", func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[16:], 1<<50)
			return b
		}), anyModel(), []string{"size"}, "damaged", nil},
		{"NaN focal", badFile("cameras.bin", func(b []byte) []byte { return floatsAt(b, 32, math.NaN()) }), anyModel(), []string{"not finite"}, "damaged", nil},
		{"negative focal", badFile("cameras.bin", func(b []byte) []byte { return floatsAt(b, 32, -1) }), anyModel(), []string{"focal", "p0.png"}, "damaged", nil},
	}
}

// badModels are captures whose model can be read but makes no sense.
func badModels() []badInput {
	strict := LoadOptions{Model: AnyModel, Strict: true} // others leave out the photo, see TestBadPoses
	return []badInput{
		{"missing points file", removed("sparse/0/points3D.bin"), anyModel(), []string{"points3D.bin"}, "cameras.bin, images.bin and points3D.bin", nil},
		{"NaN rotation", badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose, math.NaN()) }), strict, []string{`"p0.png"`, "rotation"}, "without this image", nil},
		{"zero rotation", badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose, 0, 0, 0, 0) }), strict, []string{`"p0.png"`, "rotation"}, "without this image", nil},
		{"NaN translation", badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose+32, math.NaN()) }), strict, []string{`"p0.png"`, "translation"}, "without this image", nil},
		{"infinite translation", badFile("images.bin", func(b []byte) []byte { return floatsAt(b, imagePose+48, math.Inf(1)) }), strict, []string{`"p0.png"`, "translation"}, "without this image", nil},
		{"unknown camera", badFile("images.bin", func(b []byte) []byte {
			b[imagePose+56] = 77
			return b
		}), anyModel(), []string{"camera 77"}, "different models", nil},
		{"no images", func(t *testing.T, root string) { tinyModel(t, root, nil, tinyPoints()) }, anyModel(), []string{"no registered images"}, "mapper", nil},
		{"two images", func(t *testing.T, root string) { tinyModel(t, root, tinyCameras()[:2], tinyPoints()) }, anyModel(), []string{"2 images are registered", "3"}, "overlap", nil},
		{"name outside", func(t *testing.T, root string) {
			cams := tinyCameras()
			cams[2].Name = "../../x.png"
			tinyModel(t, root, cams, tinyPoints())
		}, anyModel(), []string{`"../../x.png"`}, "damaged", nil},
		{"names twice", func(t *testing.T, root string) {
			cams := tinyCameras()
			cams[2].Name = cams[1].Name
			tinyModel(t, root, cams, tinyPoints())
		}, anyModel(), []string{"p1.png", "twice"}, "again", nil},
	}
}

// badFolders are captures in which something is missing or in another form.
func badFolders() []badInput {
	strict := LoadOptions{Model: AnyModel, Strict: true}
	return []badInput{
		{"missing folder", func(t *testing.T, root string) { removed(".")(t, root) }, anyModel(), []string{"no such folder"}, "spelling", nil},
		{"empty folder", removed("sparse", "images"), anyModel(), []string{"empty", "sparse/0", "distorted/sparse/0"}, "sparse/0", nil},
		{"no model", removed("sparse"), anyModel(), []string{"no COLMAP model", "colmap/sparse/0"}, "colmap feature_extractor", nil},
		{"no such model", nil, LoadOptions{Model: 7}, []string{"no model 7"}, "0", ErrUsage},
		{"bad downscale", nil, LoadOptions{Model: AnyModel, Downscale: 3}, []string{"3"}, "auto", ErrUsage},
		{"all photos missing", removed("images/p0.png", "images/p1.png", "images/p2.png", "images/p3.png", "images/p4.png"), anyModel(), []string{"5 of 5 photos are missing", "p0.png"}, "--images", nil},
		{"no photo folder", removed("images"), anyModel(), []string{"no folder images"}, "--images", nil},
		{"images option", nil, LoadOptions{Model: AnyModel, Images: "nowhere"}, []string{"nowhere", "no such folder"}, "--images", nil},
		{"missing, strict", removed("images/p1.png"), strict, []string{"1 of 5 photos are missing", "p1.png"}, "--images", nil},
		{"broken, strict", func(t *testing.T, root string) { put(t, filepath.Join(root, "images", "p3.png"), []byte("no photo")) }, strict, []string{"1 of 5 photos cannot be read", "p3.png", "neither JPEG nor PNG"}, "--strict", nil},
		{"three broken", func(t *testing.T, root string) {
			for _, n := range []string{"p0.png", "p1.png", "p2.png"} {
				put(t, filepath.Join(root, "images", n), []byte("\x89PNG\r\n\x1a\n"))
			}
		}, anyModel(), []string{"3 of 5 photos cannot be read", "within its header"}, "again", nil},
		{"aspect", func(t *testing.T, root string) { writePhoto(t, filepath.Join(root, "images", "p2.png"), 320, 320) }, anyModel(), []string{"p2.png", "320 x 320", "32 x 24"}, "cropped", nil},
		{"aspects", func(t *testing.T, root string) {
			writePhoto(t, filepath.Join(root, "images", "p1.png"), 30, 30)
			writePhoto(t, filepath.Join(root, "images", "p2.png"), 320, 320)
			writePhoto(t, filepath.Join(root, "images", "p4.png"), 320, 320)
		}, anyModel(), []string{"p1.png", "30 x 30", "the same goes for 2 more: p2.png, p4.png"}, "cropped", nil},
		{"turned", func(t *testing.T, root string) { writePhoto(t, filepath.Join(root, "images", "p2.png"), 240, 320) }, anyModel(), []string{"240 x 320", "32 x 24"}, "orientation", nil},
		{"no such format", nil, LoadOptions{Model: AnyModel, Format: "nerf"}, []string{`"nerf"`}, "transforms", ErrUsage},
		{"format not there", nil, LoadOptions{Model: AnyModel, Format: FormatBlender}, []string{"no transforms_train.json"}, "--format", nil},
		{"colmap not there", func(t *testing.T, root string) {
			removed("sparse", "images")(t, root)
			put(t, filepath.Join(root, "transforms.json"), []byte("{}"))
		}, LoadOptions{Model: AnyModel, Format: FormatColmap}, []string{"no COLMAP model"}, "sparse/0", nil},
		{"its folder of photos", nil, anyModel(), []string{"no cameras"}, "this folder is part of a capture: name that, ", nil},
		{"a video", func(t *testing.T, root string) {
			removed("sparse", "images")(t, root)
			put(t, filepath.Join(root, "my walk.MP4"), nil)
		}, anyModel(), []string{"no cameras"}, "walk.MP4' -vf fps=2", nil},
	}
}

func TestBadInput(t *testing.T) {
	for _, test := range slices.Concat(badFiles(), badModels(), badFolders()) {
		t.Run(test.name, func(t *testing.T) {
			root := tinyCapture(t)
			if test.change != nil {
				test.change(t, root)
			}
			if test.name == "its folder of photos" {
				root = filepath.Join(root, "images")
			}
			begin := time.Now()
			c, err := Load(root, test.options)
			if took := time.Since(begin); took > time.Second {
				t.Errorf("took %v", took)
			}
			if err == nil || c != nil {
				t.Fatal("it was accepted")
			}
			checkRefusal(t, err, test.want, test.hint, test.kind)
		})
	}
}

func checkRefusal(t *testing.T, err error, want []string, hint string, kind error) {
	t.Helper()
	t.Logf("%v\nhint: %s", err, Hint(err))
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error lacks %q", w)
		}
	}
	if Hint(err) == "" || !strings.Contains(Hint(err), hint) {
		t.Errorf("the hint lacks %q", hint)
	}
	if kind == nil {
		kind = ErrData
	}
	if !errors.Is(err, kind) {
		t.Errorf("the kind is not %q", kind)
	}
}

func TestFileAsCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ply")
	put(t, path, []byte("ply"))
	_, err := Load(path, anyModel())
	checkRefusal(t, err, []string{"this is a file"}, "sparse/0", nil)
}

// heapGrowth gives the bytes that f allocates.
func heapGrowth(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestClaimedCountsAllocateNothing(t *testing.T) {
	for _, file := range []string{"cameras.bin", "images.bin", "points3D.bin"} {
		root := tinyCapture(t)
		edit(t, root, file, claim)
		if n := heapGrowth(func() { _, _ = Load(root, anyModel()) }); n > 1<<20 {
			t.Errorf("%s: %d bytes allocated for a file of a few hundred", file, n)
		}
	}
}

func TestPhotosLeftOut(t *testing.T) {
	root := tinyCapture(t)
	removed("images/p1.png")(t, root)
	put(t, filepath.Join(root, "images", "p3.png"), nil)
	c := mustLoad(t, root, anyModel())
	if len(c.Cameras) != 3 {
		t.Fatalf("%d cameras", len(c.Cameras))
	}
	for code, name := range map[string]string{"missing-photos": "p1.png", "broken-photos": "p3.png"} {
		if w, ok := c.warning(code); !ok || w.Count != 1 || !slices.Equal(w.Names, []string{name}) {
			t.Errorf("%s: %+v", code, w)
		}
	}
}

func TestWarningShowsFiveNames(t *testing.T) {
	root := tinyCapture(t)
	for i := range 9 {
		writePhoto(t, filepath.Join(root, "images", fmt.Sprintf("x%d.png", i)), 8, 8)
	}
	put(t, filepath.Join(root, "images", "notes.txt"), nil)
	put(t, filepath.Join(root, "images", "._p1.png"), nil)
	w, ok := mustLoad(t, root, anyModel()).warning("unregistered-photos")
	if !ok || w.Count != 9 || len(w.Names) != 5 || !strings.HasSuffix(w.String(), "x4.png and 4 more") {
		t.Errorf("%+v: %s", w, w)
	}
}

func TestPhotoNames(t *testing.T) {
	root := t.TempDir()
	cams := tinyCameras()
	for i, name := range []string{`left\a.png`, "right/A.JPG", "b.jpg", "B.png", "./c.jpeg"} {
		cams[i].Name = name
	}
	tinyModel(t, root, cams, tinyPoints())
	for _, name := range []string{"left/a.png", "Right/a.jpg", "b.jpg", "b.PNG", "C.png"} {
		writePhoto(t, filepath.Join(root, "images", filepath.FromSlash(name)), tinyWidth, tinyHeight)
	}
	c := mustLoad(t, root, LoadOptions{Model: AnyModel, Strict: true})
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
	root := tinyCapture(t)
	cams := tinyCameras()
	for n, count := range map[int]int{0: 3, 1: 5, 10: 4} {
		if err := WriteColmap(filepath.Join(root, "sparse", fmt.Sprint(n)), cams[:count], tinyPoints()); err != nil {
			t.Fatal(err)
		}
	}
	c := mustLoad(t, root, anyModel())
	w, ok := c.warning("other-models")
	if len(c.Cameras) != 5 || !ok || w.Count != 2 || !strings.Contains(w.String(), "--model") || !strings.Contains(w.String(), "sparse/10 (4 images)") {
		t.Errorf("%d cameras, warning %s", len(c.Cameras), w)
	}
	c = mustLoad(t, root, LoadOptions{Model: 10})
	if len(c.Cameras) != 4 || filepath.Base(c.Model) != "10" {
		t.Errorf("%d cameras of %s", len(c.Cameras), c.Model)
	}
}

func TestModelPlaces(t *testing.T) {
	root := tinyCapture(t)
	model := filepath.Join(root, "sparse", "0")
	// Each later place is found once the earlier ones are gone.
	for _, place := range []string{"sparse", "colmap/sparse/0", "distorted/sparse/0", "."} {
		to := filepath.Join(root, filepath.FromSlash(place))
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range modelFiles {
			if err := os.Rename(filepath.Join(model, file+".bin"), filepath.Join(to, file+".bin")); err != nil {
				t.Fatal(err)
			}
		}
		model = to
		if c := mustLoad(t, root, anyModel()); c.Model != to || len(c.Cameras) != tinyPhotos {
			t.Errorf("%s: read %s", place, c.Model)
		}
	}
}

func TestBadPointsAreLeftOut(t *testing.T) {
	root := tinyCapture(t)
	points := append(tinyPoints(), Point{Pos: [3]float64{math.NaN(), 0, 0}}, Point{Pos: [3]float64{0, math.Inf(-1), 0}})
	tinyModel(t, root, tinyCameras(), points)
	c := mustLoad(t, root, anyModel())
	if w, ok := c.warning("bad-points"); !ok || w.Count != 2 || !reflect.DeepEqual(c.Points, tinyPoints()) {
		t.Errorf("%v, %v", w, c.Points)
	}
}
