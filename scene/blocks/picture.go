package blocks

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"vksplat/internal/atomicfile"
)

// How the picture of a plan looks. Lengths are pixels.
const (
	pictureSide = 1400 // of the longer side, without the legend
	legend      = 44   // strip below
	letters     = 2    // times the font's size
	letterWidth = 7    // of the font
	dash        = 10
	manyPoints  = 100_000 // more are drawn smaller
)

var (
	ink   = color.RGBA{R: 0x20, G: 0x24, B: 0x28, A: 0xff}
	paper = color.RGBA{R: 0xfa, G: 0xfa, B: 0xf7, A: 0xff}
	aside = color.RGBA{R: 0xd0, G: 0x20, B: 0x30, A: 0xff} // held-out cameras
	hues  = []color.RGBA{{R: 0x4c, G: 0x78, B: 0xa8, A: 0xff}, {R: 0xe4, G: 0x8b, B: 0x3a, A: 0xff},
		{R: 0x4f, G: 0x9d, B: 0x5b, A: 0xff}, {R: 0x9a, G: 0x66, B: 0xb2, A: 0xff},
		{R: 0xb8, G: 0x9b, B: 0x2e, A: 0xff},
		{R: 0x3f, G: 0x9f, B: 0xa3, A: 0xff}, {R: 0xc2, G: 0x5f, B: 0x86, A: 0xff},
		{R: 0x7d, G: 0x6b, B: 0x5d, A: 0xff}}
)

// drawing maps the ground to pixels, up in the picture being Y.
type drawing struct {
	*image.RGBA
	area  Rect
	scale float64
}

// WritePicture draws a plan from above: points in the colour of the block whose core they are in, cores as lines,
// margins dashed, cameras as dots.
func (s *Sight) WritePicture(path string, list []Block, heldOut func(camera int) bool) error {
	d := newDrawing(s.bounds)
	for k := range list {
		d.fill(list[k].Core, mixed(hues[k%len(hues)], paper, 0.1))
	}
	radius, strength := 1, 0.75
	if len(s.places) > manyPoints {
		radius, strength = 0, 0.5
	}
	for _, at := range s.places {
		for k := range list {
			if list[k].Core.Holds(at) {
				d.dot(at, radius, mixed(hues[k%len(hues)], paper, strength))
				break
			}
		}
	}
	for k := range list {
		if len(list) > 1 {
			d.frame(list[k].Margin, hues[k%len(hues)], dash, 3*(k%4))
			d.frame(list[k].Core, ink, 0, 0)
		}
	}
	for k := range list {
		b := &list[k]
		middle := b.Core.within(d.area)
		x, y := d.pixel([2]float64{(middle.Min[0] + middle.Max[0]) / 2, (middle.Min[1] + middle.Max[1]) / 2})
		d.write(x, y-16, fmt.Sprintf("block %d", k), true)
		d.write(x, y+16, fmt.Sprintf("%d cameras, %d points", b.Cameras.Count(), b.Points.Count()), true)
	}
	for i := range s.capture.Cameras {
		at := s.Ground.At(s.capture.Cameras[i].Center())
		if heldOut(i) {
			d.dot(at, 3, aside)
		} else {
			d.dot(at, 2, ink)
		}
	}
	d.legend()
	return atomicfile.Write(path, func(w io.Writer) error { return png.Encode(w, d.RGBA) })
}

// newDrawing returns an empty picture of an area of the ground, and some around it.
func newDrawing(area Rect) *drawing {
	size := area.size()
	around := 0.2 * max(size[0], size[1], 1e-6)
	d := &drawing{area: area}
	for k := range 2 {
		d.area.Min[k], d.area.Max[k] = d.area.Min[k]-around, d.area.Max[k]+around
	}
	size = d.area.size()
	d.scale = pictureSide / max(size[0], size[1])
	w, h := int(math.Ceil(size[0]*d.scale)), int(math.Ceil(size[1]*d.scale))
	d.RGBA = image.NewRGBA(image.Rect(0, 0, w, h+legend))
	draw.Draw(d, d.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	return d
}

func (d *drawing) height() int { return d.Bounds().Dy() - legend }

func (d *drawing) pixel(at [2]float64) (x, y int) {
	return int(math.Floor((at[0] - d.area.Min[0]) * d.scale)),
		d.height() - 1 - int(math.Floor((at[1]-d.area.Min[1])*d.scale))
}

func (d *drawing) dot(at [2]float64, radius int, c color.RGBA) {
	if !d.area.Holds(at) {
		return
	}
	x, y := d.pixel(at)
	d.disc(x, y, radius, c)
}

func (d *drawing) disc(x, y, radius int, c color.RGBA) {
	for dy := -radius; dy <= radius; dy++ {
		for dx := -radius; dx <= radius; dx++ {
			if dx*dx+dy*dy <= radius*radius+1 {
				d.SetRGBA(x+dx, y+dy, c)
			}
		}
	}
}

// frame draws the sides of a rectangle as far as they are in the picture, dashed with dashes of a length, unless that
// is 0, from an offset on.
func (d *drawing) frame(r Rect, c color.RGBA, dashes, from int) {
	in := r.within(d.area)
	x0, y1 := d.pixel(in.Min)
	x1, y0 := d.pixel(in.Max)
	for k, side := range [4]float64{r.Min[0], r.Max[0], r.Min[1], r.Max[1]} {
		if !(side > d.area.Min[k/2] && side < d.area.Max[k/2]) {
			continue
		}
		a, b := image.Rect(x0, y0, x0+1, y1), true
		switch k {
		case 1:
			a = image.Rect(x1, y0, x1+1, y1)
		case 2:
			a, b = image.Rect(x0, y1, x1, y1+1), false
		case 3:
			a, b = image.Rect(x0, y0, x1, y0+1), false
		}
		d.line(a, b, c, dashes, from)
	}
}

// line draws a line two pixels wide along a rectangle that is one pixel wide.
func (d *drawing) line(along image.Rectangle, upright bool, c color.RGBA, dashes, from int) {
	for y := along.Min.Y; y < along.Max.Y; y++ {
		for x := along.Min.X; x < along.Max.X; x++ {
			if dashes > 0 && (x+y+from)/dashes%2 == 1 {
				continue
			}
			d.SetRGBA(x, y, c)
			if upright {
				d.SetRGBA(x+1, y, c)
			} else {
				d.SetRGBA(x, y+1, c)
			}
		}
	}
}

// write prints a text around or right of a point, on paper.
func (d *drawing) write(x, y int, text string, centred bool) {
	face := basicfont.Face7x13
	w, h := face.Advance*len(text), face.Height
	small := image.NewAlpha(image.Rect(0, 0, w, h))
	(&font.Drawer{Dst: small, Src: image.Opaque, Face: face, Dot: fixed.P(0, face.Ascent)}).DrawString(text)
	if centred {
		x -= letters * w / 2
	}
	y -= letters * h / 2
	const around = 4
	draw.Draw(d, image.Rect(x-around, y-around/2, x+letters*w+around, y+letters*h+around/2),
		image.NewUniform(color.NRGBA{R: paper.R, G: paper.G, B: paper.B, A: 0xd0}), image.Point{}, draw.Over)
	for v := range letters * h {
		for u := range letters * w {
			if small.AlphaAt(u/letters, v/letters).A > 0x80 {
				d.SetRGBA(x+u, y+v, ink)
			}
		}
	}
}

func (d *drawing) legend() {
	y := d.height() + legend/2
	x := 16
	d.disc(x, y, 5, ink)
	d.write(x+14, y, "camera", false)
	d.disc(x+140, y, 5, aside)
	d.write(x+154, y, "held out", false)
	d.line(image.Rect(x+310, y, x+350, y+1), false, ink, 0, 0)
	d.write(x+360, y, "core", false)
	d.line(image.Rect(x+450, y, x+490, y+1), false, hues[0], dash, 0)
	d.write(x+500, y, "margin", false)
}

// fill colours an area as far as it is in the picture.
func (d *drawing) fill(r Rect, c color.RGBA) {
	in := r.within(d.area)
	x0, y1 := d.pixel(in.Min)
	x1, y0 := d.pixel(in.Max)
	draw.Draw(d, image.Rect(x0, y0+1, x1, y1+1), image.NewUniform(c), image.Point{}, draw.Src)
}

// mixed has a share of a and the rest of b.
func mixed(a, b color.RGBA, share float64) color.RGBA {
	mix := func(a, b uint8) uint8 { return uint8(share*float64(a) + (1-share)*float64(b)) }
	return color.RGBA{R: mix(a.R, b.R), G: mix(a.G, b.G), B: mix(a.B, b.B), A: 0xff}
}
