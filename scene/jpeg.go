package scene

import (
	"errors"
	"image"
	"image/jpeg"
	"io"
)

// errCMYK refuses photos made for print: without their ICC profile the colours would be guesses.
var errCMYK = errors.New("the photo is in CMYK colours")

// decodeJPEG decodes a JPEG to RGBA. Entropy decoding and the inverse transform are the standard library's; chroma upsampling and colour conversion are
// those of libjpeg (jdsample.c, jdcolor.c), because the standard library repeats chroma samples and the trainers that results are compared with do not.
func decodeJPEG(r io.Reader) (Image, error) {
	decoded, err := jpeg.Decode(r)
	if err != nil {
		return Image{}, err
	}
	switch img := decoded.(type) {
	case *image.YCbCr:
		return fromYCbCr(img), nil
	case *image.CMYK:
		return Image{}, errCMYK
	}
	return fromImage(decoded), nil
}

// fromYCbCr converts the planes, band by band of one chroma row.
func fromYCbCr(img *image.YCbCr) Image {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	out := Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
	up := newUpsampler(img)
	cb, cr := make([]uint8, up.rowLen()), make([]uint8, up.rowLen())
	for y := range height {
		up.row(cb, up.cb, y)
		up.row(cr, up.cr, y)
		luma := img.Y[img.YOffset(img.Rect.Min.X, img.Rect.Min.Y+y):]
		convertRow(out.Pix[4*width*y:4*width*(y+1)], luma[:width], cb[:width], cr[:width])
	}
	return out
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

// convertRow writes a row of RGBA from luma and chroma of the same length.
func convertRow(dst, luma, cb, cr []uint8) {
	for x, l := range luma {
		y, b, r := int32(l), cb[x], cr[x]
		p := dst[4*x : 4*x+4 : 4*x+4]
		p[0] = clamp8(y + redOfCr[r])
		p[1] = clamp8(y + (greenOfCb[b]+greenOfCr[r])>>16)
		p[2] = clamp8(y + blueOfCb[b])
		p[3] = 255
	}
}

func clamp8(x int32) uint8 {
	if uint32(x) > 255 {
		return uint8(^(x >> 31)) // 0 below, 255 above
	}
	return uint8(x)
}

// plane is one chroma plane, without the padding to whole blocks.
type plane struct {
	pix                   []uint8
	stride, width, height int
}

// at returns row y; rows beyond the edges are those at the edges.
func (p plane) at(y int) []uint8 {
	y = min(max(y, 0), p.height-1)
	return p.pix[y*p.stride : y*p.stride+p.width]
}

// upsampler expands chroma planes row by row.
type upsampler struct {
	cb, cr plane
	h, v   int     // luma samples per chroma sample
	sums   []int32 // a row of vertically weighted sums
}

func newUpsampler(img *image.YCbCr) *upsampler {
	u := &upsampler{}
	u.h, u.v = subsampling(img.SubsampleRatio)
	offset := img.COffset(img.Rect.Min.X, img.Rect.Min.Y)
	w, h := (img.Rect.Dx()+u.h-1)/u.h, (img.Rect.Dy()+u.v-1)/u.v
	u.cb = plane{img.Cb[offset:], img.CStride, w, h}
	u.cr = plane{img.Cr[offset:], img.CStride, w, h}
	u.sums = make([]int32, w)
	return u
}

// subsampling returns how many luma samples a chroma sample covers, across and down.
func subsampling(r image.YCbCrSubsampleRatio) (h, v int) {
	switch r {
	case image.YCbCrSubsampleRatio422:
		return 2, 1
	case image.YCbCrSubsampleRatio420:
		return 2, 2
	case image.YCbCrSubsampleRatio440:
		return 1, 2
	case image.YCbCrSubsampleRatio411:
		return 4, 1
	case image.YCbCrSubsampleRatio410:
		return 4, 2
	}
	return 1, 1
}

// rowLen is the length of an upsampled row: at least the image's width.
func (u *upsampler) rowLen() int { return u.cb.width * u.h }

// row writes the upsampled row y of p to dst. Triangle filters are used where libjpeg-turbo uses them: 2x1 and 2x2 of planes wider than two samples, and
// 1x2; samples are repeated otherwise.
func (u *upsampler) row(dst []uint8, p plane, y int) {
	near := p.at(y / u.v)
	switch {
	case u.h == 2 && u.v == 1 && p.width > 2:
		triangle2x1(dst, near)
	case u.h == 2 && u.v == 2 && p.width > 2:
		far := p.at(y/2 - 1 + 2*(y&1))
		for x, s := range near {
			u.sums[x] = 3*int32(s) + int32(far[x])
		}
		triangle2x2(dst, u.sums)
	case u.h == 1 && u.v == 2:
		far, bias := p.at(y/2-1+2*(y&1)), int32(1+y&1)
		for x, s := range near {
			dst[x] = uint8((3*int32(s) + int32(far[x]) + bias) >> 2)
		}
	default:
		for x := range dst {
			dst[x] = near[x/u.h]
		}
	}
}

// triangle2x1 doubles a row: 3/4 of the nearer sample and 1/4 of the farther one, with libjpeg's alternating rounding (1, 2).
func triangle2x1(dst, src []uint8) {
	last := len(src) - 1
	for x, s := range src {
		mid := 3 * int32(s)
		dst[2*x] = uint8((mid + int32(src[max(x-1, 0)]) + 1) >> 2)
		dst[2*x+1] = uint8((mid + int32(src[min(x+1, last)]) + 2) >> 2)
	}
}

// triangle2x2 doubles a row of sums, each four times a sample, with libjpeg's alternating rounding (8, 7).
func triangle2x2(dst []uint8, sums []int32) {
	last := len(sums) - 1
	for x, s := range sums {
		mid := 3 * s
		dst[2*x] = uint8((mid + sums[max(x-1, 0)] + 8) >> 4)
		dst[2*x+1] = uint8((mid + sums[min(x+1, last)] + 7) >> 4)
	}
}
