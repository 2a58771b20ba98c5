package photo

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"

	"vksplat/internal/fault"
	"vksplat/scene/jpeg"
)

// CutShort says whether a photo's file lacks what every complete one has at its end. It reads the first and the last
// bytes, and the whole of a JPEG with something behind its end, as phones append films. What cannot be read is not cut
// short: decoding tells.
func CutShort(path string) bool {
	f, size, err := fault.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // only read from
	if size == 0 {
		return false
	}
	head, tail := make([]byte, min(size, riffHeader)), make([]byte, min(size, EndBytes))
	if _, err := f.ReadAt(head, 0); err != nil {
		return false
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil || !endsEarly(head, tail, size) {
		return false
	}
	return !isJPEG(head) || !hasJPEGEnd(bufio.NewReaderSize(f, 1<<16))
}

// hasJPEGEnd looks for the end of a JPEG's pixels: in these no marker but a restart's comes before it, and segments in
// front, which may hold a smaller JPEG, are passed over.
func hasJPEGEnd(r *bufio.Reader) bool {
	if jpeg.Segments(r, func(uint8, int, io.Reader) (bool, error) { return false, nil }) != nil {
		return false
	}
	for {
		if _, err := r.ReadSlice(0xff); err == bufio.ErrBufferFull {
			continue
		} else if err != nil {
			return false
		}
		if b, err := r.ReadByte(); err != nil || b == jpeg.MarkerEOI {
			return err == nil
		} else if b == 0xff && r.UnreadByte() != nil {
			return false
		}
	}
}

// EndBytes is how many bytes at the end of a file its end is looked for in: some cameras append bytes of their own.
const EndBytes = 4096

// endsEarly says whether a photo of size bytes, which begins and ends with these, lacks the marker that every complete
// one has at or near its end.
func endsEarly(head, tail []byte, size int64) bool {
	tail = tail[max(0, len(tail)-EndBytes):]
	switch {
	case isJPEG(head):
		return !bytes.Contains(tail, []byte{0xff, jpeg.MarkerEOI})
	case bytes.HasPrefix(head, []byte("\x89PNG")):
		return !bytes.Contains(tail, []byte("IEND"))
	case isWebP(head):
		return int64(binary.LittleEndian.Uint32(head[4:])) > size-8
	}
	return false
}
