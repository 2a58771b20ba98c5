package scene

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cameraOfModel makes a cameras.bin with one camera of the given model.
func cameraOfModel(id int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, 1)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, uint32(id))
	b = le.AppendUint64(b, tinyWidth)
	b = le.AppendUint64(b, tinyHeight)
	for i := range colmapModels[id].params {
		b = appendFloats(b, float64(20+i))
	}
	return b
}

// Every model's record becomes a calibration, whatever is made of it later.
func TestCameraModels(t *testing.T) {
	for id, model := range colmapModels {
		t.Run(model.name, func(t *testing.T) {
			root := tinyCapture(t)
			edit(t, root, "cameras.bin", func([]byte) []byte { return cameraOfModel(id) })
			c := &Capture{Model: filepath.Join(root, "sparse", "0")}
			records, err := c.readModel(&binaryModel)
			if err != nil {
				t.Fatal(err)
			}
			k := records[0].lens.calibration(1, 1)
			if k.Model != LensModel(id) || k.Width != tinyWidth || k.Height != tinyHeight || len(k.Params) != model.params || k.Params[model.params-1] != float64(19+model.params) {
				t.Errorf("calibration %+v", k)
			}
		})
	}
}

func TestPinholeModels(t *testing.T) {
	for id := range 2 {
		root := tinyCapture(t)
		edit(t, root, "cameras.bin", func([]byte) []byte { return cameraOfModel(id) })
		k := mustLoad(t, root, anyModel()).Cameras[0]
		if got, want := [4]float64{k.Fx, k.Fy, k.Cx, k.Cy}, [4]float64{20, 20 + float64(id), 21 + float64(id), 22 + float64(id)}; got != want {
			t.Errorf("intrinsics %v, want %v", got, want)
		}
	}
}

// A camera with distortion that no image has is in nobody's way.
func TestUnusedCamera(t *testing.T) {
	root := tinyCapture(t)
	edit(t, root, "cameras.bin", func(b []byte) []byte {
		binary.LittleEndian.PutUint64(b, 2)
		other := cameraOfModel(4)[8:]
		other[0] = 9
		return append(b, other...)
	})
	mustLoad(t, root, anyModel())
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"/a/b-c_d.e": "/a/b-c_d.e", "/a b/c": "'/a b/c'", "/a$b": "'/a$b'", "it's": `'it'\''s'`, "/ä": "/ä", "": "''"} {
		if got := ShellWord(in); got != want {
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
		images = appendFloats(images, 1, 0, 0, 0, 1, 2, float64(i))
		images = le.AppendUint32(images, 1)
		images = append(images, "n\x00"...)
		images = le.AppendUint64(images, 3)
		images = append(images, make([]byte, 3*24)...)
	}
	views, err := parseColmapImages(bytesCursor(images))
	if err != nil || len(views) != 2 || views[1].t != [3]float64{1, 2, 1} || views[1].name != "n" {
		t.Errorf("%+v, %v", views, err)
	}
	points := le.AppendUint64(nil, 2)
	for i := range 2 {
		points = le.AppendUint64(points, uint64(i))
		points = appendFloats(points, 1, 2, float64(i))
		points = append(points, 7, 8, 9)
		points = appendFloats(points, 0.5)
		points = le.AppendUint64(points, 4)
		points = append(points, make([]byte, 4*8)...)
	}
	got, bad, err := parseColmapPoints(bytesCursor(points))
	if err != nil || bad != 0 || !slices.Equal(got, []Point{{[3]float64{1, 2, 0}, [3]uint8{7, 8, 9}}, {[3]float64{1, 2, 1}, [3]uint8{7, 8, 9}}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Every prefix of a file must be refused without a panic.
func TestEveryTruncation(t *testing.T) {
	root := tinyCapture(t)
	for file, parse := range map[string]func(b []byte) error{
		"cameras.bin":  func(b []byte) error { _, err := parseColmapCameras(bytesCursor(b)); return err },
		"images.bin":   func(b []byte) error { _, err := parseColmapImages(bytesCursor(b)); return err },
		"points3D.bin": func(b []byte) error { _, _, err := parseColmapPoints(bytesCursor(b)); return err },
	} {
		data, err := os.ReadFile(filepath.Join(root, "sparse", "0", file))
		if err != nil {
			t.Fatal(err)
		}
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

func TestWriteColmapRefuses(t *testing.T) {
	for name, change := range map[string]func(c *Camera){
		"fisheye": func(c *Camera) { c.Model = Fisheye },
		"no name": func(c *Camera) { c.Name = "" },
		"NUL":     func(c *Camera) { c.Name = "a\x00b" },
	} {
		cams := tinyCameras()
		change(&cams[1])
		if err := WriteColmap(t.TempDir(), cams, nil); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// sharedCapture gives the folder of a real capture, or skips the test.
func sharedCapture(t *testing.T, name string) string {
	t.Helper()
	root := filepath.Join("..", "..", "shared", "data", name)
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the capture %s is not on this machine", name)
	}
	return root
}

func TestRealCaptures(t *testing.T) {
	for _, test := range []struct {
		name           string
		images, points int
		width, height  int
		options        LoadOptions
		notice         string // code of a warning
	}{
		{name: "fox", images: 50, points: 12479, options: anyModel(), notice: "other-format"},
		{name: "miku_plush", images: 97, points: 25784, options: anyModel()},
		{name: "monstree_exif", images: 23, points: 7896, options: anyModel()},
		{name: "chair_400", images: 125, points: 0, options: anyModel(), width: 400, height: 400},
		{name: "fox_pinhole", images: 50, points: 12479, options: anyModel(), width: 533, height: 948},
		{name: "bonsai_146", images: 146, points: 43802, options: anyModel(), width: 800, height: 533},
		{name: "miku_plush_pinhole_small", images: 97, points: 25784, options: anyModel(), width: 504, height: 378},
		{name: "desk", images: 29, points: 7562, options: anyModel(), width: 1600, height: 898, notice: "reduced-photos"},
		{name: "desk", images: 29, points: 7562, options: LoadOptions{Model: AnyModel, Downscale: 1}, width: 1906, height: 1070},
		{name: "desk", images: 29, points: 7562, options: LoadOptions{Model: AnyModel, Downscale: 2}, width: 953, height: 535},
		{name: "desk", images: 29, points: 7562, options: LoadOptions{Model: AnyModel, Images: "images_2"}, width: 953, height: 535},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := test.options
			o.Strict = true
			c := mustLoad(t, sharedCapture(t, test.name), o)
			for _, w := range c.Warnings {
				t.Log(w)
			}
			cam := c.Cameras[0]
			if len(c.Cameras) != test.images || len(c.Points) != test.points || test.width != 0 && (cam.Width != test.width || cam.Height != test.height) {
				t.Errorf("%d images of %d x %d, %d points", len(c.Cameras), cam.Width, cam.Height, len(c.Points))
			}
			if _, ok := c.warning(test.notice); test.notice != "" && !ok {
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
func pointsInView(c *Capture) float64 {
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
			root := sharedCapture(t, test.name)
			begin := time.Now()
			var err error
			grown := heapGrowth(func() { _, err = Load(root, anyModel()) })
			if took := time.Since(begin); took > time.Second {
				t.Errorf("took %v", took)
			}
			if grown > 64<<20 {
				t.Errorf("allocated %d bytes", grown)
			}
			if err == nil {
				t.Fatal("it was accepted")
			}
			checkRefusal(t, err, strings.Split(test.want, "|"), test.hint, nil)
		})
	}
}

// addModelSeeds gives a fuzz target a good file and bad ones.
func addModelSeeds(f *testing.F, file string) {
	f.Helper()
	data, err := os.ReadFile(filepath.Join(tinyCapture(f), "sparse", "0", file))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Add(claim(slices.Clone(data)))
	f.Add([]byte{})
}

// bytesCursor reads a file that is in memory.
func bytesCursor(data []byte) *cursor { return newCursor(bytes.NewReader(data), int64(len(data))) }

// TestCursorOfGrowingFile reads a file that is written to meanwhile: it ends where it ended when it was opened.
func TestCursorOfGrowingFile(t *testing.T) {
	c := newCursor(strings.NewReader("name\x00"), 3)
	if text := c.text(); text != "" || !errors.Is(c.err, errCut) || c.at > c.size {
		t.Errorf("%q, %v at byte %d of %d", text, c.err, c.at, c.size)
	}
}

func FuzzColmapCameras(f *testing.F) {
	addModelSeeds(f, "cameras.bin")
	for id := range colmapModels {
		f.Add(cameraOfModel(id))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cams, err := parseColmapCameras(bytesCursor(data))
		if err != nil {
			return
		}
		checkCameras(t, cams)
	})
}

func checkCameras(t *testing.T, cams map[uint32]colmapCamera) {
	for _, c := range cams {
		k := c.lens
		if len(k.Params) != colmapModels[k.Model].params || k.Width <= 0 || k.Height <= 0 || !finite(k.Params...) {
			t.Errorf("%+v", c)
		}
	}
}

func FuzzColmapImages(f *testing.F) {
	addModelSeeds(f, "images.bin")
	f.Fuzz(func(t *testing.T, data []byte) {
		views, err := parseColmapImages(bytesCursor(data))
		if err != nil {
			return
		}
		checkImages(t, views)
	})
}

func checkImages(t *testing.T, views []colmapImage) {
	k := colmapCamera{lens: Calibration{Model: LensSimplePinhole, Width: 8, Height: 8, Params: []float64{8, 4, 4}}}
	for _, v := range views {
		cam, err := makeCamera(k, v)
		if err == nil && (!finite(cam.R[:]...) || !finite(cam.T[:]...) || cam.Name == "" || !filepath.IsLocal(cam.Name)) {
			t.Errorf("%+v", cam)
		}
	}
}

func FuzzColmapPoints(f *testing.F) {
	addModelSeeds(f, "points3D.bin")
	f.Fuzz(func(t *testing.T, data []byte) {
		points, bad, err := parseColmapPoints(bytesCursor(data))
		if err == nil && uint64(len(points)+bad) != binary.LittleEndian.Uint64(data) {
			t.Errorf("%d points and %d bad ones", len(points), bad)
		}
		for _, p := range points {
			if !finite(p.Pos[:]...) {
				t.Errorf("%v", p)
			}
		}
	})
}
