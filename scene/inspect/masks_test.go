package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/photo"
	"vksplat/scene/scenetest"
)

// maskedCapture is a tiny capture whose photos show something, with masks that are white all over.
func maskedCapture(t *testing.T) string {
	root := loadtest.TinyCapture(t)
	for _, cam := range scenetest.TinyCameras() {
		drawing(t, filepath.Join(root, "images", cam.Name), 2)
		scenetest.WriteImage(t, maskPath(root, cam.Name),
			scenetest.Halves(scenetest.TinyWidth, scenetest.TinyHeight, scenetest.TinyWidth))
	}
	return root
}

func maskPath(root, name string) string { return filepath.Join(root, "masks", name) }

// tinyNames are those of some photos of the tiny capture.
func tinyNames(n int) (names []string) {
	for _, cam := range scenetest.TinyCameras()[:n] {
		names = append(names, cam.Name)
	}
	return names
}

// withOrientation puts an EXIF orientation into a PNG.
func withOrientation(t *testing.T, path string, tag uint16) {
	data := must.Get(os.ReadFile(path))(t)
	block := scenetest.ExifBlock(binary.BigEndian, tag)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(block)))
	chunk = append(append(chunk, "eXIf"...), block...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	at := bytes.Index(data, []byte("IDAT")) - 4
	scenetest.Put(t, path, slices.Concat(data[:at], chunk, data[at:]))
}

func TestInspectMasks(t *testing.T) {
	whole := scenetest.Halves(scenetest.TinyWidth, scenetest.TinyHeight, scenetest.TinyWidth)
	black := scenetest.Halves(scenetest.TinyWidth, scenetest.TinyHeight, 0)
	damaged := func(t *testing.T, path string) { // a whole header and half a picture
		var b bytes.Buffer
		must.Do(t, png.Encode(&b,
			image.NewNRGBA(image.Rect(0, 0, scenetest.TinyWidth, scenetest.TinyHeight))))
		scenetest.Put(t, path, b.Bytes()[:b.Len()-40])
	}
	draw := func(img scene.Image) func(*testing.T, string) {
		return func(t *testing.T, path string) { scenetest.WriteImage(t, path, img) }
	}
	for _, test := range []struct {
		name     string
		masks    int // that are replaced
		write    func(t *testing.T, path string)
		invert   bool
		tag      uint16 // of the photos
		code     string // "": no problem
		severity Severity
		want     string // in the text and the remedy
	}{
		{name: "good", code: ""},
		{name: "reduced", masks: 5, write: draw(scenetest.Halves(scenetest.TinyWidth/2, scenetest.TinyHeight/2, 9))},
		{name: "rounded", masks: 5, write: draw(scenetest.Halves(11, 8, 9))}, // a third of 32 x 24
		{name: "square", masks: 2, write: draw(scenetest.Halves(24, 24, 24)), code: "stretched-masks",
			severity: SeverityWarning, want: "24 x 24 pixels, its photo 32 x 24"},
		{name: "turned", masks: 2, write: draw(scenetest.Halves(24, 32, 24)), code: "turned-masks",
			severity: SeverityWarning, want: "rotated by 90 degrees"},
		{name: "upright", masks: 2, tag: 6, write: draw(scenetest.Halves(24, 32, 24)), code: "turned-masks",
			severity: SeverityWarning, want: "EXIF orientation"},
		{name: "one black", masks: 1, write: draw(black), code: "black-masks", severity: SeverityWarning,
			want: "1 of 5 photos leave no pixel"},
		{name: "black", masks: 5, write: draw(black), code: "black-masks", severity: SeverityFatal,
			want: "invert-masks"},
		{name: "white inverted", masks: 5, write: draw(whole), invert: true, code: "black-masks",
			severity: SeverityFatal, want: "leave it out if white does"},
		{name: "damaged", masks: 3, write: damaged, code: "broken-masks", severity: SeverityFatal,
			want: "export these masks again"},
		{name: "one damaged", masks: 1, write: damaged, code: "broken-masks", severity: SeverityWarning,
			want: "p0.png"},
		{name: "text", masks: 2, write: func(t *testing.T, path string) { scenetest.Put(t, path, []byte("no mask")) },
			code: "broken-masks", severity: SeverityWarning, want: "neither JPEG nor PNG"},
		{name: "texts", masks: 3, write: func(t *testing.T, path string) { scenetest.Put(t, path, nil) },
			code: "broken-masks", severity: SeverityFatal},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := maskedCapture(t)
			names := tinyNames(test.masks)
			for _, name := range names {
				test.write(t, maskPath(root, name))
				if test.tag > 0 {
					withOrientation(t, filepath.Join(root, "images", name), test.tag)
				}
			}
			o := loadtest.AnyModel()
			o.InvertMasks = test.invert
			for _, deep := range []bool{true, false} {
				r := inspected(t, loadtest.MustLoad(t, root, o), deep)
				var found []Problem
				for _, p := range r.Problems {
					if strings.HasSuffix(p.Code, "-masks") || strings.HasSuffix(p.Code, "-photos") {
						found = append(found, p)
					}
				}
				if test.code == "" {
					if len(found) > 0 {
						t.Errorf("decoding all photos %v: %+v", deep, found)
					}
					continue
				}
				if len(found) != 1 || found[0].Code != test.code || found[0].Severity != test.severity ||
					!slices.Equal(found[0].Names, names) ||
					!strings.Contains(found[0].Text+found[0].Remedy+strings.Join(found[0].Names, " "), test.want) {
					t.Errorf("decoding all photos %v: %+v", deep, found)
				}
				if err := r.Fatal(); (err != nil) != (test.severity == SeverityFatal) || err != nil &&
					(!errors.Is(err, fault.ErrData) || fault.Hint(err) == "") {
					t.Errorf("decoding all photos %v: %v", deep, err)
				}
			}
		})
	}
}

// A panorama loses a face to its mask and stays; one that loses all is named once.
func TestInspectMaskedFaces(t *testing.T) {
	root := t.TempDir()
	cams := scenetest.TinyCameras()
	for i := range cams {
		scenetest.WriteImage(t, filepath.Join(root, "images", cams[i].Name),
			scenetest.Paint(128, 64, func(x, y int) [4]uint8 {
				v := uint8(255 * ((x/4 + y/4) & 1))
				return [4]uint8{v, v, v, 255}
			}))
	}
	c := scenetest.Ring(3, 1000)
	c.Cameras = nil
	for i, cam := range cams {
		cam.Path = filepath.Join(root, "images", cam.Name)
		if i < 2 {
			cam.Mask = filepath.Join(root, "mask"+cam.Name)
			scenetest.WriteImage(t, cam.Mask, scenetest.Paint(128, 64, func(_, y int) [4]uint8 {
				if i == 0 && y < 40 { // the lowest rows, with the tripod, do not count
					return [4]uint8{255, 255, 255, 255}
				}
				return [4]uint8{0, 0, 0, 255}
			}))
		}
		views := must.Get(scene.Calibration{Model: scene.LensEquirectangular, Width: 128, Height: 64,
			Params: []float64{128, 64}}.Views(cam, 128, 64, 1))(t)
		c.Cameras = append(c.Cameras, views...)
	}
	r := inspected(t, c, true)
	if p, ok := r.problem("masked-faces"); !ok || p.Severity != SeverityNote ||
		!slices.Equal(p.Names, []string{"p0.png/down.png"}) {
		t.Errorf("%+v", r.Problems)
	}
	if p, ok := r.problem("black-masks"); !ok || p.Severity != SeverityWarning ||
		!slices.Equal(p.Names, []string{"p1.png"}) {
		t.Errorf("%+v", r.Problems)
	}
}

// The faces of a panorama are the same whether they are decoded together or one by one.
func TestDecodeViews(t *testing.T) {
	dir := t.TempDir()
	cam := scene.Camera{Name: "a.png", Path: filepath.Join(dir, "a.png"), Mask: filepath.Join(dir, "m.png")}
	scenetest.WriteImage(t, cam.Path,
		scenetest.Paint(96, 48,
			func(x, y int) [4]uint8 { return [4]uint8{uint8(7 * x), uint8(5 * y), uint8(x * y), 255} }))
	scenetest.WriteImage(t, cam.Mask, scenetest.Halves(96, 48, 50))
	views := must.Get(scene.Calibration{Model: scene.LensEquirectangular, Width: 96, Height: 48,
		Params: []float64{96, 48}}.Views(cam, 96, 48, 1))(t)
	views[2].Width = -1
	images, errs := photo.DecodeViews(views)
	masked := 0
	for i, v := range views {
		one, err := photo.Decode(v)
		if (err == nil) != (errs[i] == nil) || err != nil && err.Error() != errs[i].Error() ||
			!slices.Equal(one.Pix, images[i].Pix) || !slices.Equal(one.Mask, images[i].Mask) {
			t.Errorf("%s: %v, %v", v.Name, err, errs[i])
		}
		if errors.Is(err, photo.ErrMasked) {
			masked++
		}
	}
	if masked != 1 || errs[2] == nil {
		t.Errorf("%q", errs)
	}
	scenetest.Put(t, cam.Mask, []byte("no"))
	for _, err := range []error{nil, errors.New("gone")} {
		if err != nil {
			must.Do(t, os.Remove(cam.Path))
		}
		_, errs := photo.DecodeViews(views)
		for i := range errs {
			if !errors.Is(errs[i], fault.ErrData) {
				t.Errorf("%v", errs[i])
			}
		}
	}
}
