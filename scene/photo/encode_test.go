package photo

import (
	"bytes"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// ramp is a picture whose pixels differ.
func ramp(width, height int) scene.Image {
	img := scene.Image{Width: width, Height: height, Pix: make([]byte, 4*width*height)}
	for i := range width * height {
		img.Pix[4*i], img.Pix[4*i+1], img.Pix[4*i+2], img.Pix[4*i+3] = byte(3*i), byte(5*i), byte(7*i), 255
	}
	return img
}

// TestSheetReadsBack wants ReadSheet to undo WriteSheet, and Sheet to draw the same as it.
func TestSheetReadsBack(t *testing.T) {
	photo, render := ramp(7, 5), ramp(7, 5)
	slices.Reverse(render.Pix)
	for i := 3; i < len(render.Pix); i += 4 {
		render.Pix[i] = 255
	}
	path := filepath.Join(t.TempDir(), "sheet.png")
	must.Do(t, WriteSheet(path, photo, FloatRGB(render)))
	gotPhoto, gotRender, err := ReadSheet(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(gotPhoto.Pix, photo.Pix) || !bytes.Equal(gotRender.Pix, render.Pix) {
		t.Error("photo and render are not what was written")
	}
	f := must.Get(os.Open(path))(t)
	defer f.Close() // only read from
	written := must.Get(png.Decode(f))(t)
	if got := Sheet(photo, render); !bytes.Equal(got.Pix, fromImage(written).Pix) {
		t.Error("Sheet and WriteSheet draw different pictures")
	}
}

func TestReadSheetErrors(t *testing.T) {
	dir := t.TempDir()
	narrow, text := filepath.Join(dir, "narrow.png"), filepath.Join(dir, "text.png")
	must.Do(t, WritePNG(narrow, make([]float32, 3*9*2), 9, 2))
	must.Do(t, os.WriteFile(text, []byte("no picture"), 0o666))
	for _, path := range []string{narrow, text, filepath.Join(dir, "none.png")} {
		if _, _, err := ReadSheet(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct{ width, height, side, wantWidth, wantHeight int }{
		{100, 50, 200, 100, 50}, {100, 50, 100, 100, 50}, {100, 50, 50, 50, 25}, {50, 100, 30, 15, 30},
		{1000, 1, 10, 10, 1},
	} {
		got := Fit(ramp(tt.width, tt.height), tt.side)
		if got.Width != tt.wantWidth || got.Height != tt.wantHeight || len(got.Pix) != 4*got.Width*got.Height {
			t.Errorf("%dx%d into %d: %dx%d with %d bytes", tt.width, tt.height, tt.side, got.Width, got.Height,
				len(got.Pix))
		}
	}
}

// TestEncode wants PNG to keep every colour and to leave alpha out, and JPEG to keep the size.
func TestEncode(t *testing.T) {
	img := ramp(16, 8)
	img.Pix[3] = 0
	data, err := PNG(img)
	if err != nil {
		t.Fatal(err)
	}
	back := must.Get(png.Decode(bytes.NewReader(data)))(t)
	img.Pix[3] = 255
	if got := fromImage(back); !bytes.Equal(got.Pix, img.Pix) {
		t.Error("PNG changed the colours")
	}
	data = must.Get(JPEG(img, 90))(t)
	c, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil || c.Width != 16 || c.Height != 8 {
		t.Errorf("JPEG of %dx%d, %v", c.Width, c.Height, err)
	}
}

func TestFromFloats(t *testing.T) {
	got := FromFloats([]float32{0, 0.5, 1, -1, 2, 0.2}, 2, 1)
	if want := []byte{0, 128, 255, 255, 0, 255, 51, 255}; !bytes.Equal(got.Pix, want) {
		t.Errorf("%v, want %v", got.Pix, want)
	}
}

func TestOver(t *testing.T) {
	img := scene.Image{Width: 3, Height: 1, Pix: []uint8{10, 20, 30, 255, 200, 100, 0, 0, 255, 0, 100, 51}}
	got := Over(img, [3]float32{1, 0.5, 0})
	if want := []uint8{10, 20, 30, 255, 255, 128, 0, 255, 255, 102, 20, 255}; !bytes.Equal(got.Pix, want) {
		t.Errorf("%v, want %v", got.Pix, want)
	}
	if img.Pix[7] != 0 {
		t.Error("the original has changed")
	}
	opaque := scene.Image{Width: 1, Height: 1, Pix: []uint8{1, 2, 3, 255}}
	if got := Over(opaque, [3]float32{}); &got.Pix[0] != &opaque.Pix[0] {
		t.Error("an opaque image is copied")
	}
}

// TestSmallJPEG packs what packs badly.
func TestSmallJPEG(t *testing.T) {
	const side, most = PreviewSide, PreviewBytes
	for _, size := range [][2]int{{480, 480}, {1000, 20}, {1, 1}, {64, 4000}} {
		img := scene.Image{Width: size[0], Height: size[1], Pix: make([]uint8, 4*size[0]*size[1])}
		noise := rand.NewChaCha8([32]byte{1})
		_, _ = noise.Read(img.Pix) // always succeeds
		data, err := SmallJPEG(img, side, most)
		if err != nil {
			t.Fatal(err)
		}
		c, err := jpeg.DecodeConfig(bytes.NewReader(data))
		if err != nil || len(data) > most || max(c.Width, c.Height) > side {
			t.Errorf("%v: %d bytes of %d x %d pixels, %v", size, len(data), c.Width, c.Height, err)
		}
	}
}
