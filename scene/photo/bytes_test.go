package photo

import (
	"bytes"
	"image"
	"image/color"
	stdjpeg "image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/scenetest"
)

// TestDecodeBytes estimates what decoding takes for each kind of file, and for files that are none.
func TestDecodeBytes(t *testing.T) {
	const w, h = 64, 48
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	img.Set(3, 3, color.White)
	deep := image.NewNRGBA64(img.Rect)
	encode := func(f func(b *bytes.Buffer) error) []byte {
		var b bytes.Buffer
		must.Do(t, f(&b))
		return b.Bytes()
	}
	small := encode(func(b *bytes.Buffer) error { return png.Encode(b, img) })
	large := encode(func(b *bytes.Buffer) error { return png.Encode(b, deep) })
	baseline := encode(func(b *bytes.Buffer) error { return stdjpeg.Encode(b, img, nil) })
	progressive := bytes.Replace(baseline, []byte("\xff\xc0"), []byte("\xff\xc2"), 1)
	full := bytes.Replace(baseline, []byte("\x03\x01\x22\x00"), []byte("\x03\x01\x11\x00"), 1)
	grey := encode(func(b *bytes.Buffer) error { return stdjpeg.Encode(b, image.NewGray(img.Rect), nil) })
	for _, c := range []struct {
		name     string
		data     []byte
		perPixel float64
	}{
		{"8 bits.png", small, 4}, {"16 bits.png", large, 8}, {"baseline.jpg", baseline, 1.5},
		{"progressive.jpg", progressive, 7.5},
		{"4:4:4.jpg", full, 3}, {"grey.jpg", grey, 1}, {"cut.jpg", baseline[:30], 15},
		{"text.webp", []byte("some words"), 16}, {"empty", nil, 16},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		must.Do(t, os.WriteFile(path, c.data, 0o600))
		cam := scene.Camera{Path: path, Width: w, Height: h}
		if got, want := DecodeBytes(cam), int64(len(c.data))+int64(c.perPixel*w*h); got != want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, want)
		}
		if c.perPixel < 7 || c.perPixel == 8 {
			reduced := cam.Rescaled(w/2, h/2)
			if got, want := DecodeBytes(reduced), int64(len(c.data))+int64((c.perPixel+4)*w*h); got != want {
				t.Errorf("%s reduced: %d bytes, want %d", c.name, got, want)
			}
		}
	}
	dir := t.TempDir()
	photo, mask := filepath.Join(dir, "a.jpg"), filepath.Join(dir, "m.png")
	scenetest.Put(t, photo, baseline)
	scenetest.Put(t, mask, large) // 16 bits a channel: more than the photo's planes
	want := int64(len(large)+(8+4)*w*h) + w*h/8
	if got := DecodeBytes((scene.Camera{Path: photo, Width: w, Height: h, Mask: mask})); got != want {
		t.Errorf("with a large mask: %d bytes, want %d", got, want)
	}
	scenetest.WritePhoto(t, mask, 8, 6)
	want = int64(len(baseline)+3*w*h/2) + 8*6/8
	if got := DecodeBytes((scene.Camera{Path: photo, Width: w, Height: h, Mask: mask})); got != want {
		t.Errorf("with a small mask: %d bytes, want %d", got, want)
	}
	if n := DecodeBytes((scene.Camera{Path: filepath.Join(t.TempDir(), "none.jpg"), Width: w, Height: h})); n != 0 {
		t.Errorf("a photo that is not there takes %d bytes", n)
	}
}

// FuzzPhotoHeader reads what is looked at before a photo is decoded: the size that decoding then has, and the memory
// that it takes.
func FuzzPhotoHeader(f *testing.F) {
	for _, name := range []string{"420.jpg", "420progressive.jpg", "cmyk.jpg", "grayalpha.png", "lossy.webp",
		"losslessalpha.webp", "lossyalpha.webp"} {
		f.Add(readTestdata(f, name))
	}
	for _, start := range []string{"II*\x00", "MM\x00*", "BM", "GIF8", "\x00\x00\x00\x18ftypheic", "\x1aE\xdf\xa3",
		"RIFF\x00\x00\x00\x00WEBPVP8L"} {
		f.Add([]byte(start))
	}
	path := filepath.Join(f.TempDir(), "photo.jpg")
	f.Fuzz(func(t *testing.T, data []byte) {
		must.Do(t, os.WriteFile(path, data, 0o600))
		w, h, err := Size(path)
		if err == nil && (w < 1 || h < 1 || w > scene.MaxPixels/h) {
			t.Errorf("%d x %d", w, h)
		}
		if n := DecodeBytes((scene.Camera{Path: path, Width: 8, Height: 8})); n < 0 ||
			n > int64(len(data))+24*scene.MaxPixels {
			t.Errorf("decoding takes %d bytes", n)
		}
		if err == nil && w*h > 1<<16 {
			return // claims that decoding refuses, mostly
		}
		if img, decodeErr := DecodeStored(data); decodeErr == nil && (err != nil || img.Width != w || img.Height != h) {
			t.Errorf("the header gives %d x %d, %v, the photo has %d x %d", w, h, err, img.Width, img.Height)
		}
	})
}
