package photo

import (
	"fmt"
	"io"
	"math"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
)

// FloatRGB returns a photo as floats in 0..1, [H*W*3]; alpha is left out.
func FloatRGB(img scene.Image) []float32 {
	n := img.Width * img.Height
	out := make([]float32, 3*n)
	for i := range n {
		for c := range 3 {
			out[3*i+c] = float32(img.Pix[4*i+c]) / 255
		}
	}
	return out
}

// WritePNG writes a rendered image [height*width*3] as an opaque 8-bit PNG:
// clamped to 0..1, rounded to nearest, NaN as black.
func WritePNG(path string, rgb []float32, width, height int) error {
	if width <= 0 || height <= 0 || len(rgb) != 3*width*height {
		return fmt.Errorf("write png: %d values for %dx%d pixels: %w", len(rgb), width, height, scene.ErrShape)
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		return encodeRGB(w, width, height, func(y int, row []uint8) {
			for i, v := range rgb[3*width*y : 3*width*(y+1)] {
				row[i] = scene.ToByte(255 * float64(v))
			}
		})
	})
}

// How WriteSheet lays out its three panels.
const (
	sheetGap  = 4 // white pixels between panels
	sheetGain = 4 // the error panel shows |render - photo| times this, per channel
)

// WriteSheet writes a PNG with photo | render | error side by side, four white
// pixels between them. The error panel is |render - photo| per channel times
// four: black is equal, full brightness is a difference of 64/255 or more.
// render is [H*W*3] at the photo's size, clamped to 0..1.
func WriteSheet(path string, photo scene.Image, render []float32) error {
	w, h := photo.Width, photo.Height
	if w <= 0 || h <= 0 || len(photo.Pix) != 4*w*h || len(render) != 3*w*h {
		return fmt.Errorf("write sheet: photo of %dx%d with %d bytes, render with %d values: %w", w, h, len(photo.Pix),
			len(render), scene.ErrShape)
	}
	return atomicfile.Write(path, func(out io.Writer) error {
		return encodeRGB(out, 3*w+2*sheetGap, h, func(y int, row []uint8) {
			paintSheet(row, photo.Pix[4*w*y:4*w*(y+1)], render[3*w*y:3*w*(y+1)])
		})
	})
}

// paintSheet fills a row of a sheet.
func paintSheet(row, photo []uint8, render []float32) {
	n := len(render)
	left, middle, right := row[:n], row[n+3*sheetGap:][:n], row[2*(n+3*sheetGap):][:n]
	for i := range 3 * sheetGap {
		row[n+i], row[2*n+3*sheetGap+i] = 0xff, 0xff
	}
	for i, k := 0, 0; i < n; i, k = i+3, k+4 {
		for c := range 3 {
			x, p := render[i+c], photo[k+c]
			left[i+c], middle[i+c] = p, scene.ToByte(255*float64(x))
			difference := float32(math.Abs(float64(min(max(x, 0), 1) - float32(scene.ByteValues[p]))))
			right[i+c] = scene.ToByte(255 * float64(sheetGain*difference))
		}
	}
}
