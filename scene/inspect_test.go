package scene

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func inspect(t *testing.T, c *Capture, deep bool) *Report {
	t.Helper()
	r, err := Inspect(context.Background(), c, InspectOptions{Pixels: deep, Coverage: true})
	if err != nil {
		t.Fatal(err)
	}
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

// ring gives n cameras around the origin, and points near it.
func ring(n, points int) *Capture {
	c := &Capture{Root: "r", Format: FormatColmap, Frame: Identity()}
	for i := range n {
		angle := 2 * math.Pi * float64(i) / float64(n)
		r, _ := rotationFromQuat([4]float64{math.Cos(angle / 2), 0, math.Sin(angle / 2), 0})
		c.Cameras = append(c.Cameras, Camera{Name: string(rune('a' + i)), Width: 40, Height: 30, Fx: 30, Fy: 30, Cx: 20, Cy: 15, R: r, T: [3]float64{0, 0, 4}})
	}
	for i := range points {
		w := Philox4x32([4]uint32{uint32(i)}, [2]uint32{})
		c.Points = append(c.Points, Point{Pos: [3]float64{Uniform(w[0]) - 0.5, Uniform(w[1]) - 0.5, Uniform(w[2]) - 0.5}})
	}
	return c
}

func TestInspectGood(t *testing.T) {
	r := inspect(t, ring(10, 1000), false)
	if len(r.Problems) > 0 || r.Photos != 10 || r.Points != 1000 || r.PointsSeen != 1 || !near(r.MedianDistance, 4, 1e-12) || !near(r.Extent, 4, 1e-12) {
		t.Errorf("%+v", r)
	}
	for _, row := range r.Cameras {
		if row.Points != 1000 || !near(row.Distance, 4, 1e-12) || row.Lens != "PINHOLE" || row.Sharpness != nil {
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
		change   func(c *Capture)
	}{
		{"far-cameras", SeverityWarning, 1, func(c *Capture) { c.Cameras[3].T[2] = 80 }},
		{"same-pose", SeverityWarning, 2, func(c *Capture) {
			for _, i := range []int{1, 2} {
				c.Cameras[i].R, c.Cameras[i].T = c.Cameras[0].R, c.Cameras[0].T
			}
		}},
		{"one-pose", SeverityFatal, 0, func(c *Capture) {
			for i := range c.Cameras {
				c.Cameras[i].R, c.Cameras[i].T = c.Cameras[0].R, c.Cameras[0].T
			}
		}},
		{"no-points", SeverityWarning, 0, func(c *Capture) { c.Points = nil }},
		{"no-points", SeverityNote, 0, func(c *Capture) { c.Points, c.Synthetic = nil, true }},
		{"few-points", SeverityWarning, 0, func(c *Capture) { c.Points = c.Points[:100] }},
		{"unseen-points", SeverityFatal, 0, func(c *Capture) {
			for i := range c.Points {
				c.Points[i].Pos[1] += 1e4
			}
		}},
		{"unseen-points", SeverityWarning, 0, func(c *Capture) {
			for i := range c.Points[:600] {
				c.Points[i].Pos[1] += 1e2
			}
		}},
		{"far-points", SeverityNote, 0, func(c *Capture) { c.Points[7].Pos[0] = 1e5 }},
		{"far-points", SeverityWarning, 0, func(c *Capture) {
			for i := range c.Points[:100] {
				c.Points[i].Pos[0] = 1e5
			}
		}},
		{"far-points", SeverityWarning, 0, func(c *Capture) {
			for i := range c.Points[:998] {
				c.Points[i].Pos[0] = 1e5
			}
		}},
		{"blind-cameras", SeverityWarning, 1, func(c *Capture) {
			cam := &c.Cameras[2]
			centre := cam.Center()
			for i := range 6 { // look away
				cam.R[3+i] = -cam.R[3+i]
			}
			cam.T = scaled(rotate(cam.R, centre), -1)
		}},
		{"few-registered", SeverityWarning, 0, func(c *Capture) { c.warn("unregistered-photos", "11 of 21 photos", make([]string, 11)) }},
	} {
		c := ring(10, 1000)
		test.change(c)
		r := inspect(t, c, false)
		p, ok := r.problem(test.code)
		if !ok || p.Severity != test.severity || p.Count != test.count || strings.Contains(p.Text, "e+") {
			t.Errorf("%s: %+v of %+v", test.code, p, r.Problems)
		}
		if err := r.Fatal(); (test.severity == SeverityFatal) != (err != nil) || err != nil && (!errors.Is(err, ErrData) || Hint(err) == "") {
			t.Errorf("%s: %v", test.code, err)
		}
		t.Log(p.Severity, p)
	}
}

// Distances are those of the capture before it was moved to the training frame.
func TestInspectAfterNormalise(t *testing.T) {
	a, b := ring(10, 1000), ring(10, 1000)
	b.Points[7].Pos[0], a.Points[7].Pos[0] = 1e5, 1e5
	b.Normalise()
	ra, rb := inspect(t, a, false), inspect(t, b, false)
	if !near(ra.MedianDistance, rb.MedianDistance, 1e-9) || len(ra.Problems) != len(rb.Problems) || ra.Cameras[4].Points != rb.Cameras[4].Points {
		t.Errorf("%+v, %+v", ra, rb)
	}
}

// drawing writes a checkerboard of squares of the given side, or black.
func drawing(t *testing.T, path string, side int) {
	img := image.NewGray(image.Rect(0, 0, tinyWidth, tinyHeight))
	for y := range tinyHeight {
		for x := range tinyWidth {
			switch {
			case side > 0:
				img.Pix[y*img.Stride+x] = uint8(255 * ((x/side + y/side) & 1))
			case side < 0:
				img.SetGray(x, y, color.Gray{uint8(100 + x)})
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	put(t, path, b.Bytes())
}

func TestInspectPixels(t *testing.T) {
	root := tinyCapture(t)
	for i, side := range []int{2, 0, -1, 3, 2} {
		drawing(t, filepath.Join(root, "images", tinyCameras()[i].Name), side)
	}
	r := inspect(t, mustLoad(t, root, anyModel()), true)
	dark, _ := r.problem("dark-photos")
	blurred, _ := r.problem("blurred-photos")
	if !slices.Equal(dark.Names, []string{"p1.png"}) || !slices.Equal(blurred.Names, []string{"p2.png"}) {
		t.Errorf("%+v", r.Problems)
	}
	for i, cam := range mustLoad(t, root, anyModel()).Cameras {
		if img, err := cam.Decode(); err != nil || img.Dark() != (i == 1) {
			t.Errorf("photo %d is dark: %v (%v)", i, img.Dark(), err)
		}
	}
	if c := r.Cameras[0]; !near(*c.Brightness, 0.5, 1e-2) || !near(*c.Sharpness, 1, 0.5) {
		t.Errorf("%v, %v", *c.Brightness, *c.Sharpness)
	}
	file := filepath.Join(root, "images", "p4.png")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, data[:len(data)-30])
	r = inspect(t, mustLoad(t, root, anyModel()), true)
	if p, ok := r.problem("undecodable-photos"); !ok || p.Count != 1 || p.Severity != SeverityWarning {
		t.Errorf("%+v", r.Problems)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Inspect(ctx, mustLoad(t, root, anyModel()), InspectOptions{Pixels: true}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestInspectLoadWarnings(t *testing.T) {
	root := tinyCapture(t)
	removed("images/p1.png")(t, root)
	putJSON(t, filepath.Join(root, "transforms.json"), tinyTop())
	r := inspect(t, mustLoad(t, root, anyModel()), false)
	var codes []string
	for _, w := range r.Warnings() {
		codes = append(codes, w.Code)
	}
	slices.Sort(codes)
	if !slices.Equal(codes, []string{"few-points", "missing-photos", "other-format"}) {
		t.Errorf("%q", codes)
	}
	if p, _ := r.problem("other-format"); p.Severity != SeverityNote {
		t.Errorf("%+v", p)
	}
	_, err := Load(filepath.Join(root, "nowhere"), anyModel())
	failed := FailedReport("x", err)
	if err := failed.Fatal(); err == nil || !strings.Contains(err.Error(), "no such folder") || Hint(err) == "" {
		t.Error(err)
	}
}

func TestInspectRealCaptures(t *testing.T) {
	for name, codes := range map[string][]string{
		"bonsai_146": nil, "fox_pinhole": nil, "chair_400": {"no-points"}, "desk": {"reduced-photos"}, "miku_plush_pinhole_small": nil,
		"fox": {"other-format"}, "miku_plush": nil, "monstree_exif": {"orientation-tags"},
	} {
		r := inspect(t, mustLoad(t, sharedCapture(t, name), anyModel()), false)
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
	r := inspect(t, mustLoad(t, sharedCapture(t, "monstree_exif"), anyModel()), false)
	if p, ok := r.problem("orientation-tags"); !ok || p.Count != 19 || p.Severity != SeverityNote {
		t.Errorf("%+v", r.Problems)
	}
}

// TestCutPhotos finds files that were cut short by their ends alone, and no others, whatever cameras append.
func TestCutPhotos(t *testing.T) {
	photo, err := os.ReadFile("testdata/420.jpg")
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 90, 90))); err != nil {
		t.Fatal(err)
	}
	film := make([]byte, 3*endBytes)
	// An APP1 segment of 10 bytes with the end of a thumbnail.
	thumbnail := append([]byte("\xff\xd8\xff\xe1\x00\x0a\xff\xd8abcd\xff\xd9"), photo[2:]...)
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"jpeg": {photo, false}, "jpeg cut": {photo[:len(photo)-2], true}, "jpeg head": {photo[:20], true}, "jpeg and a film": {append(bytes.Clone(photo), film...), false},
		"jpeg cut, and zeros": {append(bytes.Clone(photo[:len(photo)-2]), film...), true},
		"thumbnail":           {append(bytes.Clone(thumbnail), film...), false}, "thumbnail, cut": {append(bytes.Clone(thumbnail[:len(thumbnail)-2]), film...), true},
		"png": {file.Bytes(), false}, "png cut": {file.Bytes()[:file.Len()-9], true}, "webp cut": {[]byte("RIFF\x00\x01\x00\x00WEBPVP8 "), true},
		"empty": {nil, false}, "text": {[]byte("what is not a photo has no end"), false},
	} {
		if got := cutShort(photoFile(t, "photo", c.data)); got != c.want {
			t.Errorf("%s: cut short %v", name, got)
		}
	}
	if cutShort(t.TempDir()) || cutShort(filepath.Join(t.TempDir(), "gone")) {
		t.Error("what is no file is cut short")
	}
	root := tinyCapture(t)
	path := filepath.Join(root, "images", "p4.png")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, data[:len(data)-30])
	if p, ok := inspect(t, mustLoad(t, root, anyModel()), false).problem("cut-photos"); !ok || !slices.Equal(p.Names, []string{"p4.png"}) || p.Remedy == "" {
		t.Errorf("%+v", p)
	}
}

// TestUnusedPoints wants no warning of points that training does not begin with.
func TestUnusedPoints(t *testing.T) {
	c := mustLoad(t, tinyCapture(t), anyModel())
	c.Points = nil
	for _, unused := range []bool{false, true} {
		r, err := Inspect(context.Background(), c, InspectOptions{Unused: unused})
		if err != nil {
			t.Fatal(err)
		}
		if _, told := r.problem("no-points"); told == unused {
			t.Errorf("points unused %v: %+v", unused, r.Problems)
		}
	}
}
