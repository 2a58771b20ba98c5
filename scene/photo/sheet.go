package photo

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
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
		return EncodePNG(w, &painted{width: width, height: height, paint: func(y int, row []uint8) {
			for i, v := range rgb[3*width*y : 3*width*(y+1)] {
				row[i] = scene.ToByte(255 * float64(v))
			}
		}})
	})
}

// EncodePNG writes an opaque picture the fast way: pictures are written by the hundred.
func EncodePNG(w io.Writer, m image.Image) error {
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, m); err != nil {
		return fmt.Errorf("write png: %w", err)
	}
	return nil
}

// painted is an opaque picture of which one row is in memory. Encoders ask row by row: as an image.RGBA, a sheet would
// take 12 bytes for each pixel of its photo. It serves one goroutine, and a colour that it returned is good until the
// next.
type painted struct {
	width, height int
	paint         func(y int, rgb []uint8) // fills row y, three bytes a pixel

	row   []uint8 // pixels of row at; nil: of none yet
	at    int
	pixel rgbPixel
}

// rgbPixel is an opaque colour of 8 bits a channel.
type rgbPixel [3]uint8

// RGBA implements color.Color.
func (p *rgbPixel) RGBA() (r, g, b, a uint32) {
	const wide = 0x101 // 0xff becomes 0xffff
	return wide * uint32(p[0]), wide * uint32(p[1]), wide * uint32(p[2]), 0xffff
}

// ColorModel implements image.Image.
func (p *painted) ColorModel() color.Model { return color.RGBAModel }

// Bounds implements image.Image.
func (p *painted) Bounds() image.Rectangle { return image.Rect(0, 0, p.width, p.height) }

// Opaque tells encoders that there is no alpha.
func (p *painted) Opaque() bool { return true }

// At implements image.Image.
func (p *painted) At(x, y int) color.Color {
	if p.row == nil || p.at != y {
		if p.row == nil {
			p.row = make([]uint8, 3*p.width)
		}
		p.paint(y, p.row)
		p.at = y
	}
	copy(p.pixel[:], p.row[3*x:])
	return &p.pixel
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
		return EncodePNG(out, &painted{width: 3*w + 2*sheetGap, height: h, paint: func(y int, row []uint8) {
			paintSheet(row, photo.Pix[4*w*y:4*w*(y+1)], render[3*w*y:3*w*(y+1)])
		}})
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
