package splatfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/vp8l"
)

// Limits of the images of a SOG. A lossless WebP can hold a single colour in no bits at all, so that its size says
// little of what it claims to hold: a model may have sogFreeSplats splats, and sogSplatsPerByte for each byte of its
// images. Means alone take three bytes a splat, unless many are the same.
const (
	maxWebPSide      = 16383
	maxSogSplats     = (maxWebPSide &^ 3) * (maxWebPSide &^ 3)
	sogFreeSplats    = 1 << 16
	sogSplatsPerByte = 64
)

var errNoWebP = errors.New("not a lossless WebP image")

// losslessPart finds the chunk of a lossless WebP that holds the pixels, and reads its size in pixels. data may be the
// file's start.
func losslessPart(data []byte) (chunk []byte, width, height int, err error) {
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return nil, 0, 0, otherKind(errNoWebP, data)
	}
	for rest := data[12:]; len(rest) >= 8; {
		kind, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		content := rest[8:min(8+size, int64(len(rest)))]
		switch {
		case kind == "VP8 ":
			return nil, 0, 0, errors.New("it is a lossy WebP image, which cannot hold exact numbers")
		case kind == "VP8L" && len(content) >= 5 && content[0] == 0x2f:
			v := int(binary.LittleEndian.Uint32(content[1:]))
			return content, 1 + v&0x3fff, 1 + v>>14&0x3fff, nil
		}
		rest = rest[min(8+size+size&1, int64(len(rest))):]
	}
	return nil, 0, 0, errNoWebP
}

// checkSogSize says whether an image of this size can hold one pixel for each of n splats, and is not much larger.
func checkSogSize(width, height, n int) error {
	if width*height < n || width*height > 4*n+sogFreeSplats {
		return fmt.Errorf("it has %d x %d pixels for %d splats", width, height, n)
	}
	return nil
}

// decodeLossless decodes the first n pixels of a WebP whose size must be width x height, so many channels of each, in
// the order red, green, blue, alpha.
func decodeLossless(data []byte, width, height, n, channels int) ([]uint8, error) {
	chunk, w, h, err := losslessPart(data)
	if err == nil && (w != width || h != height) {
		err = fmt.Errorf("it has %d x %d pixels, want %d x %d", w, h, width, height)
	}
	if err != nil {
		return nil, err
	}
	decoded, err := vp8l.Decode(bytes.NewReader(chunk))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	img, ok := decoded.(*image.NRGBA)
	if !ok || len(img.Pix) != 4*w*h {
		return nil, errNoWebP
	}
	if channels == 4 {
		return img.Pix[:4*n], nil
	}
	out := make([]uint8, channels*n)
	for i := range n {
		copy(out[channels*i:channels*(i+1)], img.Pix[4*i:])
	}
	return out, nil
}
