package picture

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"math"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Picture is a camera's rendering. What was not requested is empty.
type Picture struct {
	Width, Height int
	// [Height][Width] RGBA: colour over the background, rounded to nearest and clamped, and coverage
	Pix []uint8
	// [Height][Width] RGB over the background, not clamped, and the share of the background that is seen
	Color []float32
	// Expected depth, [Height][Width]: the mean of camera z over the splats that the pixel shows, each weighed by its
	// share of the pixel's colour, in units of the frame of splats and cameras; 0 where there is none.
	Depth []float32
	// Standard deviation of that z over the splats, [Height][Width]: large where a pixel shows what is near and what is
	// behind it.
	Spread []float32
}

// Formats of pictures.
const (
	FormatPNG   = "png"
	FormatPNG16 = "png16" // 16 bits a channel
	FormatJPEG  = "jpg"
	FormatEXR   = "exr" // half floats, depth as channel Z
	FormatNPY   = "npy" // single precision, [Height][Width][3], or [4] with alpha
)

// jpegQuality is of pictures that were drawn.
const jpegQuality = 95

// Options say how a picture is written.
type Options struct {
	Format string
	// with coverage: the picture was drawn over black, and files but EXR, which is premultiplied, hold colours that are
	// not multiplied by it
	Alpha  bool
	Linear bool // colours, which are sRGB as those of the photos, are made linear
}

// Bytes reports whether Picture.Pix is enough to write with these options.
func (o Options) Bytes() bool {
	return (o.Format == FormatPNG || o.Format == FormatJPEG) && !o.Alpha && !o.Linear
}

// Write writes what was drawn as one whole file. Depth is written by EXR alone.
func Write(path string, p *Picture, o Options) error {
	n := p.Width * p.Height
	if p.Width <= 0 || p.Height <= 0 || o.Bytes() && len(p.Pix) != 4*n || !o.Bytes() && len(p.Color) != 4*n ||
		len(p.Depth) != 0 && len(p.Depth) != n {
		return fmt.Errorf("write picture: %dx%d pixels with %d bytes, %d colours, %d depths: %w", p.Width, p.Height,
			len(p.Pix), len(p.Color), len(p.Depth), scene.ErrShape)
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		switch o.Format {
		case FormatPNG, FormatJPEG:
			return o.encodeBytes(w, p)
		case FormatPNG16:
			return o.encodePNG16(w, p)
		case FormatEXR:
			return encodeEXR(w, p, o)
		case FormatNPY:
			return o.encodeNPY(w, p)
		}
		return fmt.Errorf("write picture: %q is not a format", o.Format)
	})
}

// straight gives the colour of pixel i and its coverage, not multiplied by it, in the colour space that is asked for.
func (o Options) straight(p *Picture, i int) (c [3]float64, alpha float64) {
	alpha = 1
	if o.Alpha {
		alpha = 1 - float64(p.Color[4*i+3])
	}
	for k := range c {
		c[k] = float64(p.Color[4*i+k])
		if alpha < 1 && alpha > 0 {
			c[k] /= alpha
		}
		if o.Linear {
			c[k] = linearOf(c[k])
		}
	}
	return c, alpha
}

// linearOf undoes sRGB's transfer curve (IEC 61966-2-1), extended below 0 and beyond 1.
func linearOf(x float64) float64 {
	switch {
	case x < 0:
		return -linearOf(-x)
	case x <= 0.04045:
		return x / 12.92
	}
	return math.Pow((x+0.055)/1.055, 2.4)
}

// encodeBytes writes a PNG or JPEG of 8 bits a channel.
func (o Options) encodeBytes(w io.Writer, p *Picture) error {
	size := image.Rect(0, 0, p.Width, p.Height)
	pix := p.Pix
	if !o.Bytes() {
		pix = make([]uint8, 4*p.Width*p.Height)
		for i := range p.Width * p.Height {
			c, alpha := o.straight(p, i)
			for k, x := range c {
				pix[4*i+k] = scene.ToByte(255 * x)
			}
			pix[4*i+3] = scene.ToByte(255 * alpha)
		}
	}
	if o.Alpha {
		return photo.EncodePNG(w, &image.NRGBA{Pix: pix, Stride: 4 * p.Width, Rect: size})
	}
	for i := 3; i < len(pix); i += 4 {
		pix[i] = 0xff
	}
	opaque := &image.RGBA{Pix: pix, Stride: 4 * p.Width, Rect: size}
	if o.Format == FormatJPEG {
		if err := jpeg.Encode(w, opaque, &jpeg.Options{Quality: jpegQuality}); err != nil {
			return fmt.Errorf("write jpeg: %w", err)
		}
		return nil
	}
	return photo.EncodePNG(w, opaque)
}

// encodePNG16 writes a PNG of 16 bits a channel.
func (o Options) encodePNG16(w io.Writer, p *Picture) error {
	img := image.NewNRGBA64(image.Rect(0, 0, p.Width, p.Height))
	word := func(x float64) uint16 {
		if !(x > 0) {
			return 0
		}
		return uint16(min(65535*x+0.5, 65535))
	}
	for i := range p.Width * p.Height {
		c, alpha := o.straight(p, i)
		for k, x := range [4]float64{c[0], c[1], c[2], alpha} {
			binary.BigEndian.PutUint16(img.Pix[8*i+2*k:], word(x))
		}
	}
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, img); err != nil {
		return fmt.Errorf("write png: %w", err)
	}
	return nil
}

// encodeNPY writes NumPy's array file, version 1.0.
func (o Options) encodeNPY(w io.Writer, p *Picture) error {
	return writeNPY(w, func(put func(x float32)) {
		for i := range p.Width * p.Height {
			c, alpha := o.straight(p, i)
			for _, x := range c {
				put(float32(x))
			}
			if o.Alpha {
				put(float32(alpha))
			}
		}
	}, p.Height, p.Width, o.channels())
}

// writeNPY writes an array of the numbers that each puts.
func writeNPY(w io.Writer, each func(put func(x float32)), shape ...int) error {
	b := bufio.NewWriter(w)
	writeNPYHeader(b, shape...)
	var word [4]byte
	each(func(x float32) {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(x))
		_, _ = b.Write(word[:]) // Flush tells
	})
	return b.Flush()
}

// channels is how many numbers a pixel has in an array.
func (o Options) channels() int {
	if o.Alpha {
		return 4
	}
	return 3
}

// WriteDepth writes depths as NumPy's array file: [height][width] in single precision.
func WriteDepth(path string, depth []float32, width, height int) error {
	if len(depth) != width*height {
		return fmt.Errorf("write depth: %d values for %dx%d pixels: %w", len(depth), width, height, scene.ErrShape)
	}
	return atomicfile.Write(path, func(w io.Writer) error {
		return writeNPY(w, func(put func(x float32)) {
			for _, x := range depth {
				put(x)
			}
		}, height, width)
	})
}

// writeNPYHeader writes the header of an array of little-endian floats, which is a multiple of 64 bytes long. Errors of
// w show with what follows.
func writeNPYHeader(w io.Writer, shape ...int) {
	text := "{'descr': '<f4', 'fortran_order': False, 'shape': ("
	for i, n := range shape {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(n)
	}
	text += "), }"
	const prefix = 10
	pad := 63 - (prefix+len(text))%64
	head := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(head[8:], uint16(len(text)+pad+1))
	_, _ = w.Write(head)
	_, _ = fmt.Fprintf(w, "%s%*s\n", text, pad, "")
}

// RGBA returns the picture's bytes, four a pixel, of which the last means nothing: over a background, if it was drawn
// over black with its coverage.
func (p *Picture) RGBA(background [3]float32, alpha bool) []uint8 {
	if len(p.Pix) > 0 {
		return p.Pix
	}
	pix := make([]uint8, len(p.Color))
	for i := 0; i < len(pix); i += 4 {
		for k := range 3 {
			x := p.Color[i+k]
			if alpha {
				x += p.Color[i+3] * background[k]
			}
			pix[i+k] = scene.ToByte(255 * float64(x))
		}
		pix[i+3] = 0xff
	}
	return pix
}
