package scene

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
)

// FloatRGB returns a photo as floats in 0..1, [H*W*3]; alpha is left out.
func FloatRGB(img Image) []float32 {
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
		return fmt.Errorf("scene: write png: %d values for %dx%d pixels: %w", len(rgb), width, height, errShape)
	}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	paintFloats(img, 0, rgb, width, height)
	return encodePNG(path, img)
}

func encodePNG(path string, img image.Image) error {
	return WriteFile(path, func(w io.Writer) error { return png.Encode(w, img) })
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
func WriteSheet(path string, photo Image, render []float32) error {
	w, h := photo.Width, photo.Height
	if w <= 0 || h <= 0 || len(photo.Pix) != 4*w*h || len(render) != 3*w*h {
		return fmt.Errorf("scene: write sheet: photo of %dx%d with %d bytes, render with %d values: %w", w, h, len(photo.Pix), len(render), errShape)
	}
	target := FloatRGB(photo)
	diff := make([]float32, len(render))
	for i, x := range render {
		x = min(max(x, 0), 1)
		diff[i] = sheetGain * float32(math.Abs(float64(x-target[i])))
	}
	sheet := image.NewRGBA(image.Rect(0, 0, 3*w+2*sheetGap, h))
	for i := range sheet.Pix {
		sheet.Pix[i] = 0xff
	}
	for panel, rgb := range [][]float32{target, render, diff} {
		paintFloats(sheet, panel*(w+sheetGap), rgb, w, h)
	}
	return encodePNG(path, sheet)
}

// paintFloats draws rgb with its left edge at column x0.
func paintFloats(img *image.RGBA, x0 int, rgb []float32, width, height int) {
	for y := range height {
		for x := range width {
			v := rgb[3*(y*width+x):]
			img.SetRGBA(x0+x, y, color.RGBA{
				R: toByte(255 * float64(v[0])), G: toByte(255 * float64(v[1])), B: toByte(255 * float64(v[2])), A: 0xff})
		}
	}
}
