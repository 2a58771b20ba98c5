package scene

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"os"
)

// DecodeBytes returns about how many bytes of memory Decode takes beside the image that it returns, from the header of the photo: the file, the planes or
// coefficients that the decoder holds, and the photo at its stored size where it is resampled. A photo that cannot be read takes none.
func (c Camera) DecodeBytes() int64 {
	f, err := os.Open(c.Path)
	if err != nil {
		return 0
	}
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	width, height, err := photoSize(c.Path)
	if err != nil {
		width, height = c.Width, c.Height
	}
	pixels := int64(width) * int64(height)
	n := info.Size() + int64(float64(pixels)*decoderBytes(bufio.NewReader(f)))
	if width != c.Width || height != c.Height || c.Lens != nil {
		n += 4 * pixels
	}
	if c.Mask != "" {
		n += pixels
	}
	return n
}

// decoderBytes returns the bytes per pixel that a decoder holds for a file that begins so.
func decoderBytes(r *bufio.Reader) float64 {
	const (
		coefficient = 4      // an int32 for each sample of a progressive JPEG
		unknown     = 4 + 12 // the worst of all
	)
	head, _ := r.Peek(26)
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")) && len(head) == 26:
		if head[24] == 16 {
			return 8
		}
		return 4
	case bytes.HasPrefix(head, []byte("\xff\xd8")):
		progressive, samples := jpegFrame(r)
		if progressive {
			samples *= 1 + coefficient
		}
		return samples
	}
	return unknown
}

// jpegFrame reads the frame header of a JPEG: whether it is progressive, by the marker SOF2, and the samples that it stores for a pixel. What cannot be told
// counts as progressive, with three components at full resolution.
func jpegFrame(r *bufio.Reader) (progressive bool, samples float64) {
	const full = 3
	if _, err := r.Discard(2); err != nil {
		return true, full
	}
	for range 1000 { // segments before the frame header; real files have a few dozen
		var m [4]byte
		if _, err := io.ReadFull(r, m[:2]); err != nil || m[0] != 0xff {
			return true, full
		}
		if m[1] == 0xff { // padding
			if r.UnreadByte() != nil {
				return true, full
			}
			continue
		}
		if _, err := io.ReadFull(r, m[2:]); err != nil {
			return true, full
		}
		size := int(binary.BigEndian.Uint16(m[2:]))
		switch {
		case size < 2:
			return true, full
		case m[1] >= 0xc0 && m[1] <= 0xc2:
			return m[1] == 0xc2, jpegSamples(r, full)
		}
		if _, err := r.Discard(size - 2); err != nil {
			return true, full
		}
	}
	return true, full
}

// jpegSamples returns the samples for a pixel by the sampling factors of a frame header's components, otherwise where they make no sense.
func jpegSamples(r *bufio.Reader, otherwise float64) float64 {
	head, err := r.Peek(6) // precision, height, width, components
	if err != nil {
		return otherwise
	}
	n := int(head[5])
	head, err = r.Peek(6 + 3*n)
	if err != nil || n == 0 {
		return otherwise
	}
	sum, across, down := 0, 1, 1
	for i := range n {
		h, v := int(head[6+3*i+1]>>4), int(head[6+3*i+1]&15)
		if h == 0 || v == 0 {
			return otherwise
		}
		sum, across, down = sum+h*v, max(across, h), max(down, v)
	}
	return float64(sum) / float64(across*down)
}
