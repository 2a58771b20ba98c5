package jpeg

import (
	"encoding/binary"

	"vksplat/internal/pixelpool"
	"vksplat/scene"
)

// PixelsPerByte bounds what a JPEG can claim: each block takes a bit or more and stands for 8 x 16 pixels at most,
// with 4 x 1 samples of one component in a unit and 1 x 4 of another.
const PixelsPerByte = 8 * 8 * 16

// Decode decodes a JPEG to opaque RGBA: the samples that libjpeg's defaults give ("islow" inverse transform, triangle
// filters on chroma, its conversion of colours), because that is what the trainers that results are compared with see.
func Decode(data []byte) (scene.Image, error) {
	d := &jpegDecoder{data: data}
	if err := d.decode(); err != nil {
		return scene.Image{}, err
	}
	for i := range d.components {
		if d.progressive {
			d.components[i].transform()
		}
	}
	img := d.toRGBA()
	for i := range d.components {
		pixelpool.Free(d.components[i].pix)
	}
	return img, nil
}

// toRGBA brings the components to full size, row by row, and converts their colours.
func (d *jpegDecoder) toRGBA() scene.Image {
	out := scene.Image{Width: d.width, Height: d.height, Pix: pixelpool.New(4 * d.width * d.height)}
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

// conversion chooses what turns rows of components into RGBA, by the rules of libjpeg: the markers of JFIF and Adobe
// decide, then the components' numbers.
func (d *jpegDecoder) conversion() func(dst []uint8, rows [][]uint8) {
	c := d.components
	switch {
	case len(c) == 1:
		return convertGray
	case len(c) == 4 && d.adobe && d.transform != 0:
		return convertYCCK
	case len(c) == 4:
		return convertCMYK
	case !d.jfif && d.adobe && d.transform == 0, !d.jfif && !d.adobe && c[0].id == 'R' && c[1].id == 'G' &&
		c[2].id == 'B':
		return convertRGB
	}
	return convertYCC
}

// The conversion from YCbCr sums three 64-bit words, one for each sample, that hold the colours side by side: red at
// bit 0, blue at 16 and green at 32, the last with 16 bits of fraction. Each colour is raised by 256, so that no lane
// borrows from the next and the bits above a colour's eight tell whether it is within 0..255.
const (
	wordOfY    = 1 | 1<<16 | 1<<48
	wordAbove  = 3<<8 | 3<<24 | 3<<56
	wordWithin = 1<<8 | 1<<24 | 1<<56
)

// The words by chroma value: libjpeg's terms in 16.16 fixed point, each rounded by itself but green's, which are
// rounded together.
var wordOfCb, wordOfCr = chromaWords()

func chromaWords() (cb, cr [256]uint64) {
	const half, raised = 1 << 15, 256
	for i := range int64(256) {
		x := i - 128
		red, blue := (91881*x+half)>>16, (116130*x+half)>>16 // 1.40200, 1.77200
		green1, green2 := -22554*x+half, -46802*x            // 0.34414, 0.71414
		cb[i] = uint64((blue+raised)<<16 + green1<<32)
		cr[i] = uint64(red + raised + (green2+raised<<16)<<32)
	}
	return cb, cr
}

func convertYCC(dst []uint8, rows [][]uint8) {
	luma := rows[0]
	cb, cr, dst := rows[1][:len(luma)], rows[2][:len(luma)], dst[:4*len(luma)]
	for x, y := range luma {
		word := uint64(y)*wordOfY + wordOfCb[cb[x]] + wordOfCr[cr[x]]
		pixel := uint32(word)&0xFF00FF | uint32(word>>40)&0xFF00
		if word&wordAbove != wordWithin {
			pixel = clampWord(word)
		}
		binary.LittleEndian.PutUint32(dst[4*x:], pixel+0xFF<<24)
	}
}

// clampWord brings the colours of a word into 0..255. It is rare, and apart it leaves the loop its registers.
//
//go:noinline
func clampWord(word uint64) uint32 {
	red, green, blue := int32(word&0xFFFF), int32(word>>48), int32(word>>16&0xFFFF)
	return uint32(Clamp8(red-256)) | uint32(Clamp8(green-256))<<8 | uint32(Clamp8(blue-256))<<16
}

func convertGray(dst []uint8, rows [][]uint8) {
	for x, v := range rows[0] {
		binary.LittleEndian.PutUint32(dst[4*x:], uint32(v)*0x010101+0xFF<<24)
	}
}

func convertRGB(dst []uint8, rows [][]uint8) {
	for x := range rows[0] {
		copy(dst[4*x:4*x+4], []uint8{rows[0][x], rows[1][x], rows[2][x], 255})
	}
}

// convertCMYK takes ink for a filter on white light, without the profile of a press. All writers of such files store
// the complement, 255 for no ink, as Adobe's programs do, with or without Adobe's marker.
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

func Clamp8(x int32) uint8 {
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
}

func newUpsampler(c *jpegComponent, hMax, vMax int) upsampler {
	u := upsampler{c: c, h: hMax / c.h, v: vMax / c.v}
	if u.h > 1 || u.v > 1 {
		u.out = make([]uint8, c.width*u.h)
	}
	return u
}

// sampleRow returns row y of the component's samples; rows beyond the edges are those at the edges.
func (c *jpegComponent) sampleRow(y int) []uint8 {
	y = min(max(y, 0), c.height-1)
	return c.pix[8*c.wide*y:][:c.width]
}

// row returns the upsampled row y, valid until the next call. Triangle filters are used where libjpeg-turbo uses them:
// 2x1 and 2x2 of components wider than two samples, and 1x2; samples are repeated otherwise. Their rounding alternates
// between columns, or rows, as libjpeg's does.
func (u *upsampler) row(y int) []uint8 {
	near := u.c.sampleRow(y / u.v)
	switch {
	case u.h == 2 && u.v == 1 && u.c.width > 2:
		doubled(u.out, near, near, 4, 8)
	case u.h == 2 && u.v == 2 && u.c.width > 2:
		doubled(u.out, near, u.c.sampleRow(y/2-1+2*(y&1)), 8, 7)
	case u.h == 1 && u.v == 2:
		far, bias := u.c.sampleRow(y/2 - 1 + 2*(y&1))[:len(near)], 1+uint32(y&1)
		out := u.out[:len(near)]
		for x, s := range near {
			out[x] = uint8((3*uint32(s) + uint32(far[x]) + bias) >> 2)
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

// doubled doubles a row: 9/16 of the nearest sample, 3/16 of that beside it and of that in the farther row, 1/16 of the
// one across. What is added before the division alternates.
func doubled(dst, near, far []uint8, round0, round1 uint32) {
	n := len(near)
	far, dst = far[:n], dst[:2*n]
	sum := func(x int) uint32 { return 3*uint32(near[x]) + uint32(far[x]) }
	left, mid, x := sum(0), sum(0), 0
	for ; x+8 < n; x += 8 {
		right := sum(x + 8)
		left = doubleEight(dst[2*x:2*x+16], binary.LittleEndian.Uint64(near[x:]), binary.LittleEndian.Uint64(far[x:]),
			left, right, round0, round1)
		mid = right
	}
	for ; x < n; x++ {
		right := sum(min(x+1, n-1))
		dst[2*x], dst[2*x+1] = uint8((3*mid+left+round0)>>4), uint8((3*mid+right+round1)>>4)
		left, mid = mid, right
	}
}

// doubleEight is doubled for eight samples of each row, four in the 16-bit lanes of a word: the even ones and the odd
// ones. left and right are the weighted sums beside them. It returns the last one's sum.
func doubleEight(dst []uint8, near, far uint64, left, right, round0, round1 uint32) uint32 {
	const low, ones = 0x00FF00FF00FF00FF, 0x0001000100010001
	even, odd := 3*(near&low)+far&low, 3*(near>>8&low)+far>>8&low
	before, behind := odd<<16|uint64(left), even>>16|uint64(right)<<48
	even3, odd3, add0, add1 := 3*even, 3*odd, uint64(round0)*ones, uint64(round1)*ones
	pairs0 := (even3+before+add0)>>4&low | (even3+odd+add1)>>4&low<<8
	pairs1 := (odd3+even+add0)>>4&low | (odd3+behind+add1)>>4&low<<8
	binary.LittleEndian.PutUint64(dst, spread(uint32(pairs0))|spread(uint32(pairs1))<<16)
	binary.LittleEndian.PutUint64(dst[8:], spread(uint32(pairs0>>32))|spread(uint32(pairs1>>32))<<16)
	return uint32(odd >> 48)
}

// spread moves the upper half of v away from the lower by 16 bits.
func spread(v uint32) uint64 { return uint64(v&0xFFFF) | uint64(v&0xFFFF0000)<<16 }
