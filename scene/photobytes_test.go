package scene

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// TestDecodeBytes estimates what decoding takes for each kind of file, and for files that are none.
func TestDecodeBytes(t *testing.T) {
	const w, h = 64, 48
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	img.Set(3, 3, color.White)
	deep := image.NewNRGBA64(img.Rect)
	encode := func(f func(b *bytes.Buffer) error) []byte {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	small := encode(func(b *bytes.Buffer) error { return png.Encode(b, img) })
	large := encode(func(b *bytes.Buffer) error { return png.Encode(b, deep) })
	baseline := encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) })
	progressive := bytes.Replace(baseline, []byte("\xff\xc0"), []byte("\xff\xc2"), 1)
	full := bytes.Replace(baseline, []byte("\x03\x01\x22\x00"), []byte("\x03\x01\x11\x00"), 1)
	grey := encode(func(b *bytes.Buffer) error { return jpeg.Encode(b, image.NewGray(img.Rect), nil) })
	for _, c := range []struct {
		name     string
		data     []byte
		perPixel float64
	}{
		{"8 bits.png", small, 4}, {"16 bits.png", large, 8}, {"baseline.jpg", baseline, 1.5}, {"progressive.jpg", progressive, 7.5},
		{"4:4:4.jpg", full, 3}, {"grey.jpg", grey, 1}, {"cut.jpg", baseline[:30], 15}, {"text.webp", []byte("some words"), 16}, {"empty", nil, 16},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		cam := Camera{Path: path, Width: w, Height: h}
		if got, want := cam.DecodeBytes(), int64(len(c.data))+int64(c.perPixel*w*h); got != want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, want)
		}
		if c.perPixel < 7 || c.perPixel == 8 {
			reduced := cam.Rescaled(w/2, h/2)
			if got, want := reduced.DecodeBytes(), int64(len(c.data))+int64((c.perPixel+4)*w*h); got != want {
				t.Errorf("%s reduced: %d bytes, want %d", c.name, got, want)
			}
		}
	}
	if n := (Camera{Path: filepath.Join(t.TempDir(), "none.jpg"), Width: w, Height: h}).DecodeBytes(); n != 0 {
		t.Errorf("a photo that is not there takes %d bytes", n)
	}
}
