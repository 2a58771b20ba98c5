package photo

import (
	"bufio"
	"bytes"
	"io"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/internal/pixelpool"
	"vksplat/scene"
	"vksplat/scene/jpeg"
)

// DecodeBytes returns about how many bytes of memory Decode takes beside the image that it returns, from the headers of
// photo and mask: a file, the planes or coefficients that its decoder holds, and the photo at its stored size where it
// is resampled. The mask is decoded when the photo's file and planes are gone. A photo that cannot be read takes none.
func DecodeBytes(c scene.Camera) int64 {
	n, width, height := decodingBytes(c.Path, c.Width, c.Height)
	if n == 0 {
		return 0
	}
	if c.Mask != "" {
		mask, w, h := decodingBytes(c.Mask, width, height)
		n = max(n, mask+4*int64(w)*int64(h)) + int64(w)*int64(h)/8 // in colour, and then a bit a pixel
	}
	if width != c.Width || height != c.Height || c.Lens != nil {
		n += 4 * int64(width) * int64(height)
	}
	return n
}

// DecodeCosts gives DecodeBytes of each camera. The files are opened side by side: on a network or in a container that
// is what takes the time.
func DecodeCosts(cams []scene.Camera) []int64 {
	costs := make([]int64, len(cams))
	parallel.For(len(cams), func(i int) { costs[i] = DecodeBytes(cams[i]) })
	return costs
}

// decodingBytes returns the bytes of a file and of what its decoder holds beside the pixels, and the size from its
// header. Where that tells none, it is taken to be the given one. A file that cannot be read takes none.
func decodingBytes(path string, width, height int) (n int64, w, h int) {
	var err error
	if w, h, err = Size(path); err != nil {
		w, h = width, height
	}
	f, file, err := fault.Open(path)
	if err != nil {
		return 0, w, h
	}
	defer f.Close()                  // only read from
	if file >= pixelpool.PoolBytes { // see pixelpool.ReadFile
		file += pixelpool.PoolBytes
	}
	return file + int64(float64(w)*float64(h)*decoderBytes(bufio.NewReader(f))), w, h
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

// jpegFrame reads the frame header of a JPEG: whether it is progressive, by the marker SOF2, and the samples that it
// stores for a pixel. An unknown kind counts as progressive, with three components at full resolution.
func jpegFrame(r *bufio.Reader) (progressive bool, samples float64) {
	progressive, samples = true, 3
	// Whatever the error, a frame header that was found before it counts.
	_ = jpeg.Segments(r, func(m uint8, _ int, content io.Reader) (done bool, err error) {
		if m < 0xc0 || m > 0xc2 {
			return false, nil
		}
		head, err := io.ReadAll(content)
		if err == nil {
			progressive, samples = m == 0xc2, jpegSamples(head, samples)
		}
		return true, err
	})
	return progressive, samples
}

// jpegSamples returns the samples for a pixel by the sampling factors of a frame header's components, otherwise where
// they make no sense.
func jpegSamples(head []byte, otherwise float64) float64 {
	if len(head) < 6 || head[5] == 0 || len(head) < 6+3*int(head[5]) { // precision, height, width, components
		return otherwise
	}
	n := int(head[5])
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
