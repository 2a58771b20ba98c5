package photo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"

	"golang.org/x/image/webp"

	"vksplat/internal/pixelpool"
	"vksplat/scene"
	"vksplat/scene/jpeg"
)

var (
	errWebP     = errors.New("the WebP header is invalid")
	errAnimated = errors.New("the file is an animation")
)

type riffChunk struct {
	kind    string
	content []byte
}

// nextChunk takes the first chunk off data, which holds chunks of WebP, each of even length.
func nextChunk(data []byte) (chunk riffChunk, rest []byte, ok bool) {
	if len(data) < 8 {
		return riffChunk{}, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(data[4:]))
	chunk = riffChunk{string(data[:4]), data[8:min(8+n, int64(len(data)))]}
	return chunk, data[min(8+n+n&1, int64(len(data))):], true
}

// webpSize reads the size in pixels from the start of a WebP: of its canvas, or of the only picture.
func webpSize(head []byte) (width, height int, err error) {
	if len(head) < riffHeader {
		return 0, 0, errWebP
	}
	chunk, _, ok := nextChunk(head[riffHeader:])
	if !ok {
		return 0, 0, errWebP
	}
	return chunk.size()
}

// riffHeader is how many bytes of a WebP precede its chunks; webpHead holds the header and the first chunk's size.
const (
	riffHeader = 12
	webpHead   = riffHeader + 8 + 10
)

func (c riffChunk) size() (width, height int, err error) {
	b := c.content
	switch {
	case c.kind == "VP8X" && len(b) >= 10:
		const animation = 1 << 1
		if b[0]&animation != 0 {
			return 0, 0, errAnimated
		}
		return 1 + (int(b[4]) | int(b[5])<<8 | int(b[6])<<16), 1 + (int(b[7]) | int(b[8])<<8 | int(b[9])<<16), nil
	case c.kind == "VP8 " && len(b) >= 10 && string(b[3:6]) == "\x9d\x01\x2a":
		const scaleBits = 14 // a display scale lies above the size
		return int(binary.LittleEndian.Uint16(b[6:])) & (1<<scaleBits - 1),
			int(binary.LittleEndian.Uint16(b[8:])) & (1<<scaleBits - 1), nil
	case c.kind == "VP8L" && len(b) >= 5 && b[0] == 0x2F:
		v := int(binary.LittleEndian.Uint32(b[1:]))
		return 1 + v&0x3FFF, 1 + v>>14&0x3FFF, nil
	}
	return 0, 0, errWebP
}

// decodeWebP decodes a still WebP to the samples of libwebp: the chroma of lossy files is interpolated, and their
// colours have less than the full range.
func decodeWebP(data []byte) (scene.Image, error) {
	width, height, err := webpSize(data)
	if err != nil {
		return scene.Image{}, err
	}
	if err := scene.Plausible(width, height, maxPixelsPerByte, len(data)); err != nil {
		return scene.Image{}, err
	}
	for chunk, rest, ok := nextChunk(data[riffHeader:]); ok; chunk, rest, ok = nextChunk(rest) {
		if chunk.kind != "VP8 " && chunk.kind != "VP8L" {
			continue
		}
		if w, h, err := chunk.size(); err != nil || w != width || h != height {
			return scene.Image{}, errWebP
		}
	}
	decoded, err := webp.Decode(bytes.NewReader(data))
	if err != nil {
		return scene.Image{}, err
	}
	switch img := decoded.(type) {
	case *image.YCbCr:
		return fromVP8(img, nil, 0), nil
	case *image.NYCbCrA:
		return fromVP8(&img.YCbCr, img.A, img.AStride), nil
	}
	return fromImage(decoded), nil
}

// fromVP8 converts the planes of a lossy WebP, with 2 x 2 pixels to a sample of chroma.
func fromVP8(img *image.YCbCr, alpha []uint8, alphaStride int) scene.Image {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	out := scene.Image{Width: width, Height: height, Pix: pixelpool.New(4 * width * height)}
	chromaWidth, chromaHeight := (width+1)/2, (height+1)/2
	cb, cr := make([]uint8, 2*chromaWidth), make([]uint8, 2*chromaWidth)
	for y := range height {
		near, far := y/2, min(max(y/2-1+2*(y&1), 0), chromaHeight-1)
		for _, p := range []struct{ dst, src []uint8 }{{cb, img.Cb}, {cr, img.Cr}} {
			smoothVP8(p.dst, p.src[near*img.CStride:][:chromaWidth], p.src[far*img.CStride:][:chromaWidth])
		}
		luma := img.Y[y*img.YStride:][:width]
		row := out.Pix[4*width*y : 4*width*(y+1)]
		for x, l := range luma {
			p := row[4*x : 4*x+4 : 4*x+4]
			p[0], p[1], p[2] = colourVP8(l, cb[x], cr[x])
			p[3] = 255
			if alpha != nil {
				p[3] = alpha[y*alphaStride+x]
			}
		}
	}
	return out
}

// smoothVP8 doubles a row of chroma: 9/16 of the nearest sample, 3/16 of each beside it, 1/16 of the one across,
// rounded twice as libwebp does. The pixels at the ends have none beside them.
func smoothVP8(dst, near, far []uint8) {
	last := len(near) - 1
	dst[0] = uint8((3*uint32(near[0]) + uint32(far[0]) + 2) >> 2)
	dst[2*last+1] = uint8((3*uint32(near[last]) + uint32(far[last]) + 2) >> 2)
	for x := range last {
		a, b, c, d := uint32(near[x]), uint32(near[x+1]), uint32(far[x]), uint32(far[x+1])
		dst[2*x+1] = uint8(((a+3*b+3*c+d+8)>>3 + a) >> 1)
		dst[2*x+2] = uint8(((b+3*a+3*d+c+8)>>3 + b) >> 1)
	}
}

// colourVP8 converts luma of 16..235 and chroma of 16..240 in libwebp's fixed point: 14 bits of fraction, of which 8
// are dropped from each product.
func colourVP8(luma, cb, cr uint8) (r, g, b uint8) {
	y, u, v := int32(luma)*19077>>8, int32(cb), int32(cr)
	const fraction = 6
	r = jpeg.Clamp8((y + v*26149>>8 - 14234) >> fraction)
	g = jpeg.Clamp8((y - u*6419>>8 - v*13320>>8 + 8708) >> fraction)
	b = jpeg.Clamp8((y + u*33050>>8 - 17685) >> fraction)
	return r, g, b
}
