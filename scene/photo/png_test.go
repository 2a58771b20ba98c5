package photo

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// TestEncodeRGB compares pictures with what the decoder of the standard library, which checks all sums, reads of them:
// of one band and of many, wider than a band, flat, noisy, and both in turn.
func TestEncodeRGB(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {1, 5}, {2, 1}, {7, 3}, {300, 400}, {pngBand/3 + 10, 3}, {64, 3000}} {
		for kind, at := range []func(x, y int) uint32{
			func(x, y int) uint32 { return 0xff3080 },
			func(x, y int) uint32 { return uint32(x*7919+y*104729) * 2654435761 >> 7 },
			func(x, y int) uint32 { return uint32(y/700%2) * uint32(x*7919+y*104729) * 2654435761 >> 7 },
		} {
			w, h := size[0], size[1]
			var file bytes.Buffer
			must.Do(t, encodeRGB(&file, w, h, func(y int, rgb []uint8) {
				for x := range w {
					c := at(x, y)
					rgb[3*x], rgb[3*x+1], rgb[3*x+2] = uint8(c>>16), uint8(c>>8), uint8(c)
				}
			}))
			img, err := png.Decode(&file)
			if err != nil {
				t.Fatalf("%dx%d, kind %d: %v", w, h, kind, err)
			}
			if img.Bounds().Dx() != w || img.Bounds().Dy() != h {
				t.Fatalf("%dx%d, kind %d: size %v", w, h, kind, img.Bounds())
			}
			for y := range h {
				for x := range w {
					r, g, b, _ := img.At(x, y).RGBA()
					if got, want := r>>8<<16|g>>8<<8|b>>8, at(x, y)&0xffffff; got != want {
						t.Fatalf("%dx%d, kind %d: pixel %d,%d is %06x, want %06x", w, h, kind, x, y, got, want)
					}
				}
			}
		}
	}
}

// TestEncodeRGBFlat wants flat pictures to take less than a bit for each byte, as Huffman codes alone would.
func TestEncodeRGBFlat(t *testing.T) {
	var file bytes.Buffer
	if err := encodeRGB(&file, 1000, 1000, func(int, []uint8) {}); err != nil || file.Len() > 3e6/8/10 {
		t.Errorf("%d bytes, %v", file.Len(), err)
	}
}

// fullDisk refuses what comes after so many bytes.
type fullDisk struct{ left int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestEncodeRGBError(t *testing.T) {
	img := scene.Image{Width: 90, Height: 90, Pix: make([]uint8, 4*90*90)}
	whole := must.Get(PNG(img))(t)
	for room := range whole {
		if err := EncodePNG(&fullDisk{room}, flattened(img)); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("with room for %d of %d bytes: %v", room, len(whole), err)
		}
	}
}

// TestEncodeNothing wants pictures without pixels refused.
func TestEncodeNothing(t *testing.T) {
	for _, size := range [][2]int{{0, 0}, {0, 5}, {5, 0}} {
		if err := EncodePNG(io.Discard, image.NewRGBA(image.Rect(0, 0, size[0], size[1]))); err == nil {
			t.Errorf("%v: no error", size)
		}
	}
}
