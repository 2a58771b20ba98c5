package photo

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"os"

	"vksplat/internal/wording"
	"vksplat/scene"
)

// FromFloats returns rgb as 8-bit pixels. rgb is [height][width][3] with values 0..1; what lies outside is clamped.
func FromFloats(rgb []float32, width, height int) scene.Image {
	img := scene.Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
	for i := range width * height {
		for k := range 3 {
			img.Pix[4*i+k] = scene.ToByte(255 * float64(rgb[3*i+k]))
		}
		img.Pix[4*i+3] = 0xff
	}
	return img
}

// Over returns img over a background colour, 0..1, rounded to 8 bits; an opaque image comes back as it is. The mask
// stays.
func Over(img scene.Image, background [3]float32) scene.Image {
	out := img
	copied := false
	for i := 3; i < len(img.Pix); i += 4 {
		if img.Pix[i] == 0xff {
			continue
		}
		if !copied {
			out.Pix, copied = bytes.Clone(img.Pix), true
		}
		a := float64(img.Pix[i]) / 255
		for k := range 3 {
			out.Pix[i-3+k] = scene.ToByte(a*float64(img.Pix[i-3+k]) + 255*(1-a)*float64(background[k]))
		}
		out.Pix[i] = 0xff
	}
	return out
}

// Fit returns img reduced so that no side is longer than side pixels, or img itself where none is.
func Fit(img scene.Image, side int) scene.Image {
	longest := max(img.Width, img.Height)
	if longest <= side {
		return img
	}
	f := float64(side) / float64(longest)
	return resize(img, max(1, int(math.Round(f*float64(img.Width)))), max(1, int(math.Round(f*float64(img.Height)))))
}

func PNG(img scene.Image) ([]byte, error) {
	var b bytes.Buffer
	if err := EncodePNG(&b, flattened(img)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// JPEG returns img as a JPEG file of a quality from 1 to 100.
func JPEG(img scene.Image, quality int) ([]byte, error) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, flattened(img), &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encode jpeg: %w", err)
	}
	return b.Bytes(), nil
}

// What previews have at most, wherever they are made.
const (
	PreviewSide  = 480      // pixels of the longer side
	PreviewBytes = 40 << 10 // of the file, whatever the picture shows
)

// SmallJPEG returns img as a JPEG file of at most so many bytes, no side longer than side pixels: of lower quality
// where that is needed, then smaller.
func SmallJPEG(img scene.Image, side, bytes int) ([]byte, error) {
	for ; ; side /= 2 {
		small := Fit(img, side)
		for _, quality := range []int{88, 78, 65, 50} {
			data, err := JPEG(small, quality)
			if err != nil || len(data) <= bytes || side < 8 {
				return data, err
			}
		}
	}
}

// flattened returns the colours of img without its alpha, as FloatRGB does.
func flattened(img scene.Image) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, img.Width, img.Height))
	for i := 0; i < len(img.Pix); i += 4 {
		copy(out.Pix[i:i+3], img.Pix[i:i+3])
		out.Pix[i+3] = 0xff
	}
	return out
}

// Sheet returns photo, render and sheetGain times their difference side by side. Both have one size.
func Sheet(photo, render scene.Image) scene.Image {
	w, h := photo.Width, photo.Height
	a, b := flattened(photo).Pix, flattened(render).Pix
	width := 3*w + 2*sheetGap
	sheet := scene.Image{Width: width, Height: h, Pix: bytes.Repeat([]byte{0xff}, 4*width*h)}
	for y := range h {
		row := sheet.Pix[4*width*y:]
		line := 4 * w * y
		copy(row, a[line:line+4*w])
		copy(row[4*(w+sheetGap):], b[line:line+4*w])
		for i := range 4 * w {
			if i%4 < 3 {
				d := int(a[line+i]) - int(b[line+i])
				row[8*(w+sheetGap)+i] = uint8(min(255, sheetGain*max(d, -d)))
			}
		}
	}
	return sheet
}

// ReadSheet reads what WriteSheet wrote: photo and render, side by side.
func ReadSheet(path string) (photo, render scene.Image, err error) {
	f, err := os.Open(path)
	if err != nil {
		return photo, render, fmt.Errorf("read sheet: %w", err)
	}
	defer f.Close() // only read from
	src, err := png.Decode(f)
	if err != nil {
		return photo, render, fmt.Errorf("read sheet %s: %w", wording.Printable(path), err)
	}
	size := src.Bounds()
	w := (size.Dx() - 2*sheetGap) / 3
	if w < 1 || 3*w+2*sheetGap != size.Dx() {
		return photo, render, fmt.Errorf("read sheet %s: %d pixels wide are no three pictures", wording.Printable(path),
			size.Dx())
	}
	all := fromImage(src)
	return crop(all, 0, w), crop(all, w+sheetGap, w), nil
}

// crop returns the columns from x on, width of them.
func crop(img scene.Image, x, width int) scene.Image {
	out := scene.Image{Width: width, Height: img.Height, Pix: make([]uint8, 0, 4*width*img.Height)}
	for y := range img.Height {
		at := 4 * (y*img.Width + x)
		out.Pix = append(out.Pix, img.Pix[at:at+4*width]...)
	}
	return out
}
