package photo

import (
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

func readPNG(t *testing.T, path string) image.Image {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	img := must.Get(png.Decode(f))(t)
	return img
}

func wantPixel(t *testing.T, img image.Image, x, y int, want color.RGBA) {
	t.Helper()
	if got := color.RGBAModel.Convert(img.At(x, y)); got != want {
		t.Errorf("pixel %d,%d is %v, want %v", x, y, got, want)
	}
}

func TestWriteSheet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.png")
	photo := scene.Image{Width: 2, Height: 1, Pix: []uint8{10, 20, 30, 255, 255, 0, 0, 0}}
	render := []float32{10.0 / 255, 30.0 / 255, 0, 2, -1, 0.5}
	must.Do(t, WriteSheet(path, photo, render))
	img := readPNG(t, path)
	if img.Bounds() != image.Rect(0, 0, 14, 1) {
		t.Fatalf("size %v", img.Bounds())
	}
	wantPixel(t, img, 0, 0, color.RGBA{R: 10, G: 20, B: 30, A: 255})
	wantPixel(t, img, 1, 0, color.RGBA{R: 255, G: 0, B: 0, A: 255})
	wantPixel(t, img, 2, 0, color.RGBA{R: 255, G: 255, B: 255, A: 255})
	wantPixel(t, img, 6, 0, color.RGBA{R: 10, G: 30, B: 0, A: 255})
	wantPixel(t, img, 7, 0, color.RGBA{R: 255, G: 0, B: 128, A: 255})
	wantPixel(t, img, 11, 0, color.RGBA{R: 255, G: 255, B: 255, A: 255})
	wantPixel(t, img, 12, 0, color.RGBA{R: 0, G: 40, B: 120, A: 255})
	wantPixel(t, img, 13, 0, color.RGBA{R: 0, G: 0, B: 255, A: 255})
	if err := WriteSheet(path, photo, render[1:]); err == nil {
		t.Error("a render of another size passes")
	}
	if err := WriteSheet(path, scene.Image{}, nil); err == nil {
		t.Error("an empty photo passes")
	}
}

func TestWritePNG(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.png")
	nan := float32(math.NaN())
	must.Do(t, WritePNG(path, []float32{0, 1, 0.5, nan, 7, float32(math.Inf(-1))}, 1, 2))
	img := readPNG(t, path)
	wantPixel(t, img, 0, 0, color.RGBA{R: 0, G: 255, B: 128, A: 255})
	wantPixel(t, img, 0, 1, color.RGBA{R: 0, G: 255, B: 0, A: 255})
	if err := WritePNG(path, make([]float32, 6), 2, 2); err == nil {
		t.Error("a wrong size passes")
	}
}
