package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/photo"
	"vksplat/scene/scenetest"
)

func inspected(t *testing.T, c *scene.Capture, deep bool) *Report {
	t.Helper()
	r := must.Get(Capture(context.Background(), c, Options{Pixels: deep, Coverage: true}))(t)
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	for _, p := range r.Problems {
		if p.Remedy == "" && p.Severity != SeverityNote {
			t.Errorf("%s has no remedy", p.Code)
		}
	}
	return r
}

func (r *Report) problem(code string) (Problem, bool) {
	i := slices.IndexFunc(r.Problems, func(p Problem) bool { return p.Code == code })
	if i < 0 {
		return Problem{}, false
	}
	return r.Problems[i], true
}

func TestInspectGood(t *testing.T) {
	r := inspected(t, scenetest.Ring(10, 1000), false)
	if len(r.Problems) > 0 || r.Photos != 10 || r.Points != 1000 || r.PointsSeen != 1 ||
		!scenetest.Near(r.MedianDistance, 4, 1e-12) || !scenetest.Near(r.Extent, 4, 1e-12) {
		t.Errorf("%+v", r)
	}
	for _, row := range r.Cameras {
		if row.Points != 1000 || !scenetest.Near(row.Distance, 4, 1e-12) || row.Lens != "PINHOLE" ||
			row.Sharpness != nil {
			t.Errorf("%+v", row)
		}
	}
	if r.Fatal() != nil || len(r.Warnings()) > 0 {
		t.Error(r.Fatal(), r.Warnings())
	}
}

func TestInspectProblems(t *testing.T) {
	for _, test := range []struct {
		code     string
		severity Severity
		count    int
		change   func(c *scene.Capture)
	}{
		{"far-cameras", SeverityWarning, 1, func(c *scene.Capture) { c.Cameras[3].T[2] = 80 }},
		{"same-pose", SeverityWarning, 2, func(c *scene.Capture) {
			for _, i := range []int{1, 2} {
				c.Cameras[i].R, c.Cameras[i].T = c.Cameras[0].R, c.Cameras[0].T
			}
		}},
		{"one-pose", SeverityFatal, 0, func(c *scene.Capture) {
			for i := range c.Cameras {
				c.Cameras[i].R, c.Cameras[i].T = c.Cameras[0].R, c.Cameras[0].T
			}
		}},
		{"no-points", SeverityWarning, 0, func(c *scene.Capture) { c.Points = nil }},
		{"no-points", SeverityNote, 0, func(c *scene.Capture) { c.Points, c.Synthetic = nil, true }},
		{"no-points", SeverityNote, 0, func(c *scene.Capture) {
			c.Points, c.Cameras[0].Depths = nil, [2]float64{1, 2}
		}},
		{"few-points", SeverityWarning, 0, func(c *scene.Capture) { c.Points = c.Points[:100] }},
		{"unseen-points", SeverityFatal, 0, func(c *scene.Capture) {
			for i := range c.Points {
				c.Points[i].Pos[1] += 1e4
			}
		}},
		{"unseen-points", SeverityWarning, 0, func(c *scene.Capture) {
			for i := range c.Points[:600] {
				c.Points[i].Pos[1] += 1e2
			}
		}},
		{"far-points", SeverityNote, 0, func(c *scene.Capture) { c.Points[7].Pos[0] = 1e5 }},
		{"far-points", SeverityWarning, 0, func(c *scene.Capture) {
			for i := range c.Points[:100] {
				c.Points[i].Pos[0] = 1e5
			}
		}},
		{"far-points", SeverityWarning, 0, func(c *scene.Capture) {
			for i := range c.Points[:998] {
				c.Points[i].Pos[0] = 1e5
			}
		}},
		{"blind-cameras", SeverityWarning, 1, func(c *scene.Capture) {
			cam := &c.Cameras[2]
			centre := cam.Center()
			for i := range 6 { // look away
				cam.R[3+i] = -cam.R[3+i]
			}
			cam.T = geom.Scale(geom.Rotate(cam.R, centre), -1)
		}},
		{"few-registered", SeverityWarning, 0,
			func(c *scene.Capture) { c.Warn("unregistered-photos", "11 of 21 photos", make([]string, 11)) }},
	} {
		c := scenetest.Ring(10, 1000)
		test.change(c)
		r := inspected(t, c, false)
		p, ok := r.problem(test.code)
		if !ok || p.Severity != test.severity || p.Count != test.count || strings.Contains(p.Text, "e+") {
			t.Errorf("%s: %+v of %+v", test.code, p, r.Problems)
		}
		if err := r.Fatal(); (test.severity == SeverityFatal) != (err != nil) || err != nil &&
			(!errors.Is(err, fault.ErrData) || fault.Hint(err) == "") {
			t.Errorf("%s: %v", test.code, err)
		}
		if r.Pointless() != (test.code == "no-points" && test.severity == SeverityWarning) {
			t.Errorf("%s: nothing to begin with is %v", test.code, r.Pointless())
		}
		t.Log(p.Severity, p)
	}
}

// Distances are those of the capture before it was moved to the training frame.
func TestInspectAfterNormalise(t *testing.T) {
	a, b := scenetest.Ring(10, 1000), scenetest.Ring(10, 1000)
	b.Points[7].Pos[0], a.Points[7].Pos[0] = 1e5, 1e5
	b.Normalise()
	ra, rb := inspected(t, a, false), inspected(t, b, false)
	if !scenetest.Near(ra.MedianDistance, rb.MedianDistance, 1e-9) || len(ra.Problems) != len(rb.Problems) ||
		ra.Cameras[4].Points != rb.Cameras[4].Points {
		t.Errorf("%+v, %+v", ra, rb)
	}
}

// drawing writes a checkerboard of squares of the given side, or black.
func drawing(t *testing.T, path string, side int) {
	img := image.NewGray(image.Rect(0, 0, scenetest.TinyWidth, scenetest.TinyHeight))
	for y := range scenetest.TinyHeight {
		for x := range scenetest.TinyWidth {
			switch {
			case side > 0:
				img.Pix[y*img.Stride+x] = uint8(255 * ((x/side + y/side) & 1))
			case side < 0:
				img.SetGray(x, y, color.Gray{Y: uint8(100 + x)})
			}
		}
	}
	var b bytes.Buffer
	must.Do(t, png.Encode(&b, img))
	scenetest.Put(t, path, b.Bytes())
}

func TestInspectPixels(t *testing.T) {
	root := loadtest.TinyCapture(t)
	for i, side := range []int{2, 0, -1, 3, 2} {
		drawing(t, filepath.Join(root, "images", scenetest.TinyCameras()[i].Name), side)
	}
	r := inspected(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), true)
	dark, _ := r.problem("dark-photos")
	blurred, _ := r.problem("blurred-photos")
	if !slices.Equal(dark.Names, []string{"p1.png"}) || !slices.Equal(blurred.Names, []string{"p2.png"}) {
		t.Errorf("%+v", r.Problems)
	}
	for i, cam := range loadtest.MustLoad(t, root, loadtest.AnyModel()).Cameras {
		if img, err := photo.Decode(cam); err != nil || Dark(&img) != (i == 1) {
			t.Errorf("photo %d is dark: %v (%v)", i, Dark(&img), err)
		}
	}
	if c := r.Cameras[0]; !scenetest.Near(*c.Brightness, 0.5, 1e-2) || !scenetest.Near(*c.Sharpness, 1, 0.5) {
		t.Errorf("%v, %v", *c.Brightness, *c.Sharpness)
	}
	file := filepath.Join(root, "images", "p4.png")
	data := must.Get(os.ReadFile(file))(t)
	scenetest.Put(t, file, data[:len(data)-30])
	r = inspected(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), true)
	if p, ok := r.problem("undecodable-photos"); !ok || p.Count != 1 || p.Severity != SeverityWarning {
		t.Errorf("%+v", r.Problems)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Capture(ctx, loadtest.MustLoad(t, root, loadtest.AnyModel()), Options{Pixels: true}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}

func TestInspectRealCaptures(t *testing.T) {
	for name, codes := range map[string][]string{
		"bonsai_146": nil, "fox_pinhole": nil, "chair_400": {"no-points"}, "desk": {"reduced-photos"},
		"miku_plush_pinhole_small": nil,
		"fox":                      {"other-format"}, "miku_plush": nil, "monstree_exif": {"orientation-tags"},
	} {
		r := inspected(t, loadtest.MustLoad(t, scenetest.SharedCapture(t, name), loadtest.AnyModel()), false)
		var got []string
		for _, p := range r.Problems {
			got = append(got, p.Code)
			t.Log(name, p.Severity, p)
		}
		if !slices.Equal(got, codes) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestInspectOrientation(t *testing.T) {
	r := inspected(t, loadtest.MustLoad(t, scenetest.SharedCapture(t, "monstree_exif"), loadtest.AnyModel()), false)
	if p, ok := r.problem("orientation-tags"); !ok || p.Count != 19 || p.Severity != SeverityNote {
		t.Errorf("%+v", r.Problems)
	}
}

// TestCutPhotos finds files that were cut short by their ends alone, and no others, whatever cameras append.
func TestCutPhotos(t *testing.T) {
	shot := must.Get(os.ReadFile("../photo/testdata/420.jpg"))(t)
	var file bytes.Buffer
	must.Do(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 90, 90))))
	film := make([]byte, 3*photo.EndBytes)
	// An APP1 segment of 10 bytes with the end of a thumbnail.
	thumbnail := append([]byte("\xff\xd8\xff\xe1\x00\x0a\xff\xd8abcd\xff\xd9"), shot[2:]...)
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"jpeg": {shot, false}, "jpeg cut": {shot[:len(shot)-2], true}, "jpeg head": {shot[:20], true},
		"jpeg and a film":     {append(bytes.Clone(shot), film...), false},
		"jpeg cut, and zeros": {append(bytes.Clone(shot[:len(shot)-2]), film...), true},
		"thumbnail":           {append(bytes.Clone(thumbnail), film...), false},
		"thumbnail, cut":      {append(bytes.Clone(thumbnail[:len(thumbnail)-2]), film...), true},
		"png":                 {file.Bytes(), false}, "png cut": {file.Bytes()[:file.Len()-9], true},
		"webp cut": {[]byte("RIFF\x00\x01\x00\x00WEBPVP8 "), true},
		"empty":    {nil, false}, "text": {[]byte("what is not a photo has no end"), false},
	} {
		if got := photo.CutShort(scenetest.PhotoFile(t, "photo", c.data)); got != c.want {
			t.Errorf("%s: cut short %v", name, got)
		}
	}
	if photo.CutShort(t.TempDir()) || photo.CutShort(filepath.Join(t.TempDir(), "gone")) {
		t.Error("what is not a file is cut short")
	}
	root := loadtest.TinyCapture(t)
	path := filepath.Join(root, "images", "p4.png")
	data := must.Get(os.ReadFile(path))(t)
	scenetest.Put(t, path, data[:len(data)-30])
	if p, ok := inspected(t, loadtest.MustLoad(t, root, loadtest.AnyModel()), false).problem("cut-photos"); !ok ||
		!slices.Equal(p.Names, []string{"p4.png"}) || p.Remedy == "" {
		t.Errorf("%+v", p)
	}
}

// TestUnusedPoints wants no warning of points that training does not begin with.
func TestUnusedPoints(t *testing.T) {
	c := loadtest.MustLoad(t, loadtest.TinyCapture(t), loadtest.AnyModel())
	few := c.Points[:1]
	c.Points = nil
	for _, unused := range []bool{false, true} {
		r := must.Get(Capture(context.Background(), c, Options{Unused: unused}))(t)
		if _, told := r.problem("no-points"); told == unused {
			t.Errorf("points unused %v: %+v", unused, r.Problems)
		}
		some := *c
		some.Points = few
		r = must.Get(Capture(context.Background(), &some, Options{Unused: unused}))(t)
		if _, told := r.problem("few-points"); told == unused {
			t.Errorf("few points unused %v: %+v", unused, r.Problems)
		}
	}
}
