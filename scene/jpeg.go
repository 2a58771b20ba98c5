package scene

import "encoding/binary"

// jpegPixelsPerByte bounds what a JPEG can claim: each block takes at least a bit, and with the greatest difference in sampling a block stands for 8 x 16 pixels.
const jpegPixelsPerByte = 8 * 8 * 16

// decodeJPEG decodes a JPEG to opaque RGBA: the samples that libjpeg's defaults give ("islow" inverse transform, triangle filters on chroma, its conversion
// of colours), because that is what the trainers that results are compared with see.
func decodeJPEG(data []byte) (Image, error) {
	d := &jpegDecoder{data: data}
	if err := d.decode(); err != nil {
		return Image{}, err
	}
	for i := range d.components {
		if d.progressive {
			d.components[i].transform()
		}
	}
	return d.toRGBA(), nil
}

// toRGBA brings the components to full size, row by row, and converts their colours.
func (d *jpegDecoder) toRGBA() Image {
	out := Image{Width: d.width, Height: d.height, Pix: make([]uint8, 4*d.width*d.height)}
	convert := d.conversion()
	ups := make([]upsampler, len(d.components))
	rows := make([][]uint8, len(ups))
	for i := range ups {
		ups[i] = newUpsampler(&d.components[i], d.hMax, d.vMax)
	}
	for y := range d.height {
		for i := range ups {
			rows[i] = ups[i].row(y)[:d.width]
		}
		convert(out.Pix[4*d.width*y:4*d.width*(y+1)], rows)
	}
	return out
}

// conversion chooses what turns rows of components into RGBA, by the rules of libjpeg: the markers of JFIF and Adobe decide, then the components' numbers.
func (d *jpegDecoder) conversion() func(dst []uint8, rows [][]uint8) {
	c := d.components
	switch {
	case len(c) == 1:
		return convertGray
	case len(c) == 4 && d.adobe && d.transform != 0:
		return convertYCCK
	case len(c) == 4:
		return convertCMYK
	case !d.jfif && d.adobe && d.transform == 0, !d.jfif && !d.adobe && c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B':
		return convertRGB
	}
	return convertYCC
}

// The terms of libjpeg's conversion in 16.16 fixed point, by chroma value; green's rounding is in its Cb term.
var redOfCr, blueOfCb, greenOfCr, greenOfCb = conversionTables()

func conversionTables() (red, blue, greenCr, greenCb [256]int32) {
	const half = 1 << 15
	for i := range 256 {
		x := int32(i) - 128
		red[i] = (91881*x + half) >> 16   // 1.40200
		blue[i] = (116130*x + half) >> 16 // 1.77200
		greenCr[i] = -46802 * x           // 0.71414
		greenCb[i] = -22554*x + half      // 0.34414
	}
	return red, blue, greenCr, greenCb
}

func convertYCC(dst []uint8, rows [][]uint8) {
	cb, cr := rows[1][:len(rows[0])], rows[2][:len(rows[0])]
	for x, l := range rows[0] {
		y, b, r := int32(l), cb[x], cr[x]
		red, green, blue := y+redOfCr[r], y+(greenOfCb[b]+greenOfCr[r])>>16, y+blueOfCb[b]
		if uint32(red|green|blue) > 255 {
			red, green, blue = int32(clamp8(red)), int32(clamp8(green)), int32(clamp8(blue))
		}
		binary.LittleEndian.PutUint32(dst[4*x:], uint32(red)|uint32(green)<<8|uint32(blue)<<16|0xFF<<24)
	}
}

func convertGray(dst []uint8, rows [][]uint8) {
	for x, v := range rows[0] {
		binary.LittleEndian.PutUint32(dst[4*x:], uint32(v)*0x010101|0xFF<<24)
	}
}

func convertRGB(dst []uint8, rows [][]uint8) {
	for x := range rows[0] {
		copy(dst[4*x:4*x+4], []uint8{rows[0][x], rows[1][x], rows[2][x], 255})
	}
}

// convertCMYK takes ink for a filter on white light, without the profile of a press. All writers of such files store the complement, 255 for no ink, as
// Adobe's programs do, with or without Adobe's marker.
func convertCMYK(dst []uint8, rows [][]uint8) {
	for x, k := range rows[3] {
		copy(dst[4*x:4*x+4], []uint8{inked(rows[0][x], k), inked(rows[1][x], k), inked(rows[2][x], k), 255})
	}
}

// convertYCCK is convertCMYK of colours stored as YCbCr of the ink.
func convertYCCK(dst []uint8, rows [][]uint8) {
	convertYCC(dst, rows)
	for x, k := range rows[3] {
		p := dst[4*x : 4*x+4]
		copy(p, []uint8{inked(255-p[0], k), inked(255-p[1], k), inked(255-p[2], k)})
	}
}

// inked is what black leaves of a colour: their product, with black's part rounded as Pillow does.
func inked(v, k uint8) uint8 {
	lost := uint32(255-v)*uint32(k) + 128
	return k - uint8((lost+lost>>8)>>8)
}

func clamp8(x int32) uint8 {
	if uint32(x) > 255 {
		return uint8(^(x >> 31)) // 0 below, 255 above
	}
	return uint8(x)
}

// upsampler brings the rows of a component to full size.
type upsampler struct {
	c    *jpegComponent
	h, v int     // pixels per sample
	out  []uint8 // an upsampled row, at least the image's width
	sums []int32 // a row of vertically weighted sums
}

func newUpsampler(c *jpegComponent, hMax, vMax int) upsampler {
	h, v := hMax/c.h, vMax/c.v
	u := upsampler{c: c, h: h, v: v}
	if h > 1 || v > 1 {
		u.out, u.sums = make([]uint8, c.width*h), make([]int32, c.width)
	}
	return u
}

// sampleRow returns row y of the component's samples; rows beyond the edges are those at the edges.
func (c *jpegComponent) sampleRow(y int) []uint8 {
	y = min(max(y, 0), c.height-1)
	return c.pix[8*c.wide*y:][:c.width]
}

// row returns the upsampled row y, valid until the next call. Triangle filters are used where libjpeg-turbo uses them: 2x1 and 2x2 of components wider than
// two samples, and 1x2; samples are repeated otherwise.
func (u *upsampler) row(y int) []uint8 {
	near := u.c.sampleRow(y / u.v)
	switch {
	case u.h == 1 && u.v == 1:
		return near
	case u.h == 2 && u.v == 1 && u.c.width > 2:
		triangle2x1(u.out, near)
	case u.h == 2 && u.v == 2 && u.c.width > 2:
		far := u.c.sampleRow(y/2 - 1 + 2*(y&1))[:len(near)]
		sums := u.sums[:len(near)]
		for x, s := range near {
			sums[x] = 3*int32(s) + int32(far[x])
		}
		triangle2x2(u.out, sums)
	case u.h == 1 && u.v == 2:
		far, bias := u.c.sampleRow(y/2 - 1 + 2*(y&1))[:len(near)], int32(1+y&1)
		out := u.out[:len(near)]
		for x, s := range near {
			out[x] = uint8((3*int32(s) + int32(far[x]) + bias) >> 2)
		}
	case u.h == 1:
		return near
	default:
		for x := range u.out {
			u.out[x] = near[x/u.h]
		}
	}
	return u.out
}

// triangle2x1 doubles a row of two samples or more: 3/4 of the nearer sample and 1/4 of the farther one, with libjpeg's alternating rounding (1, 2).
func triangle2x1(dst, src []uint8) {
	left, mid := int32(src[0]), int32(src[0])
	for x, s := range src[1:] {
		right := int32(s)
		p := dst[2*x : 2*x+2 : 2*x+2]
		p[0], p[1] = uint8((3*mid+left+1)>>2), uint8((3*mid+right+2)>>2)
		left, mid = mid, right
	}
	p := dst[2*len(src)-2 : 2*len(src)]
	p[0], p[1] = uint8((3*mid+left+1)>>2), uint8((4*mid+2)>>2)
}

// triangle2x2 doubles a row of sums, each four times a sample, with libjpeg's alternating rounding (8, 7).
func triangle2x2(dst []uint8, sums []int32) {
	left, mid := sums[0], sums[0]
	for x, right := range sums[1:] {
		p := dst[2*x : 2*x+2 : 2*x+2]
		p[0], p[1] = uint8((3*mid+left+8)>>4), uint8((3*mid+right+7)>>4)
		left, mid = mid, right
	}
	p := dst[2*len(sums)-2 : 2*len(sums)]
	p[0], p[1] = uint8((3*mid+left+8)>>4), uint8((4*mid+7)>>4)
}
