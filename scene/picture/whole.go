package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
)

// WholePicture tells whether a file is one that WritePicture has written to its end, of a size in pixels, without
// decoding it: what was cut short on the way to another disk is not. It looks at the file's head and at its end.
func WholePicture(path string, width, height int, o Options) bool {
	switch o.Format {
	case FormatPNG, FormatPNG16:
		return wholeFile(path, func(f io.ReaderAt, size int64) bool {
			return wholeImage(f, size, width, height, png.DecodeConfig, pngEnd)
		})
	case FormatJPEG:
		return wholeFile(path, func(f io.ReaderAt, size int64) bool {
			return wholeImage(f, size, width, height, jpeg.DecodeConfig, jpegEnd)
		})
	case FormatEXR:
		return wholeFile(path, func(f io.ReaderAt, size int64) bool { return wholeEXR(f, size, height) })
	case FormatNPY:
		return wholeNPY(path, height, width, o.channels())
	}
	return false
}

func WholeDepth(path string, width, height int) bool { return wholeNPY(path, height, width) }

var (
	pngEnd  = []byte("\x00\x00\x00\x00IEND\xae\x42\x60\x82") // the last chunk, with its checksum
	jpegEnd = []byte{0xff, 0xd9}                             // EOI
)

// wholeFile asks whether an open file of a size is whole; one that cannot be read is not.
func wholeFile(path string, whole func(f io.ReaderAt, size int64) bool) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // only read
	info, err := f.Stat()
	return err == nil && whole(f, info.Size())
}

// wholeImage wants a size in pixels at the head of a file and what ends it at its end.
func wholeImage(f io.ReaderAt, size int64, width, height int, head func(io.Reader) (image.Config, error),
	end []byte) bool {
	is, err := head(io.NewSectionReader(f, 0, size))
	if err != nil || is.Width != width || is.Height != height {
		return false
	}
	last := make([]byte, len(end))
	_, err = f.ReadAt(last, max(0, size-int64(len(end))))
	return err == nil && bytes.Equal(last, end)
}

// exrHeadBytes is more than the attributes of a file that encodeEXR writes take.
const exrHeadBytes = 4096

// wholeEXR wants the last block of pixels to end where the file does.
func wholeEXR(f io.ReaderAt, size int64, height int) bool {
	head := make([]byte, min(size, exrHeadBytes))
	if _, err := f.ReadAt(head, 0); err != nil || len(head) < 8 {
		return false
	}
	at := 8 // behind the magic number and the version
	for at < len(head) && head[at] != 0 {
		for range 2 { // name and type
			n := bytes.IndexByte(head[at:], 0)
			if n < 0 {
				return false
			}
			at += n + 1
		}
		if at+4 > len(head) {
			return false
		}
		value := binary.LittleEndian.Uint32(head[at:])
		if value > exrHeadBytes {
			return false
		}
		at += 4 + int(value)
	}
	blocks := (height + exrLines - 1) / exrLines
	var last, block [8]byte // where the last block begins; its first row and how long it is
	if _, err := f.ReadAt(last[:], int64(at)+1+8*int64(blocks-1)); err != nil {
		return false
	}
	from := binary.LittleEndian.Uint64(last[:])
	if from > uint64(size) {
		return false
	}
	if _, err := f.ReadAt(block[:], int64(from)); err != nil {
		return false
	}
	return binary.LittleEndian.Uint32(block[:]) == uint32((blocks-1)*exrLines) &&
		int64(from)+8+int64(binary.LittleEndian.Uint32(block[4:])) == size
}

// wholeNPY wants the header of an array of a shape, and its size.
func wholeNPY(path string, shape ...int) bool {
	var want bytes.Buffer
	writeNPYHeader(&want, shape...)
	bytesOf := int64(4)
	for _, n := range shape {
		bytesOf *= int64(n)
	}
	return wholeFile(path, func(f io.ReaderAt, size int64) bool {
		head := make([]byte, want.Len())
		_, err := f.ReadAt(head, 0)
		return err == nil && bytes.Equal(head, want.Bytes()) && size == int64(want.Len())+bytesOf
	})
}
