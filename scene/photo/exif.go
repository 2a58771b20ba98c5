package photo

import (
	"bytes"
	"encoding/binary"
	"io"
	"strconv"

	"vksplat/internal/fault"
	"vksplat/scene/jpeg"
)

// maxExif bounds what is read of a file to find its orientation, in bytes: a segment of JPEG cannot be longer.
const maxExif = 1 << 16

// Orientation reads the EXIF orientation of a JPEG, PNG or WebP: 1 to 8, where 1 is upright and what is given for a
// file without it, with a broken one or of another kind. Poses are of the pixels as stored, so decoding ignores it; it
// tells why a photo and its calibration may disagree, and how to turn pictures for people. Only headers are read.
// Errors are of type *fault.Error.
func Orientation(path string) (int, error) {
	f, size, err := fault.Open(path)
	if err != nil {
		return 1, &fault.Error{Op: "read photo", Path: path, Err: err, Kind: fault.ReadKind(err), Hint: HintPhoto}
	}
	defer f.Close() // only read from
	return orientation(f, size), nil
}

// SidewaysTag gives the EXIF orientation of a photo and says whether it swaps the sides of the pixels as stored.
func SidewaysTag(path string) (tag int, sideways bool) {
	tag, err := Orientation(path)
	return tag, err == nil && tag > 4
}

func orientation(r io.ReaderAt, size int64) int {
	first, _ := tiffFolders(exifOf(r, size))
	if v, err := strconv.Atoi(first[tagOrientation]); err == nil && v >= 1 && v <= 8 {
		return v
	}
	return 1
}

// jpegExif returns the content of a JPEG's EXIF segment, nil if there is none before the image.
func jpegExif(r io.Reader) (exif []byte) {
	// Whatever the error, an orientation that was found before it counts.
	_ = jpeg.Segments(r, func(m uint8, n int, content io.Reader) (done bool, err error) {
		if m != jpeg.MarkerAPP1 {
			return false, nil
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(content, data); err != nil {
			return true, err
		}
		if !bytes.HasPrefix(data, []byte("Exif\x00\x00")) {
			return false, nil // Adobe keeps XMP under the same marker
		}
		exif = data
		return true, nil
	})
	return exif
}

// chunkExif returns the content of the EXIF chunk of a PNG or WebP, nil if there is none. Chunks of PNG have their
// length first and a checksum behind them; those of WebP are padded to even lengths.
func chunkExif(r io.ReaderAt, size int64, isPNG bool) []byte {
	at := int64(riffHeader)
	if isPNG {
		at = 8
	}
	var head [8]byte
	for range jpeg.MaxSegments {
		if _, err := r.ReadAt(head[:], at); err != nil {
			return nil
		}
		name, n := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
		padding := n & 1
		if isPNG {
			name, n, padding = string(head[4:]), int64(binary.BigEndian.Uint32(head[:])), 4
		}
		at += 8
		switch name {
		case "eXIf", "EXIF":
			data := make([]byte, max(min(n, maxExif, size-at), 0))
			read, _ := r.ReadAt(data, at)
			return data[:read]
		case "IDAT":
			return nil // by custom it stands before the image
		}
		at += n + padding
	}
	return nil
}
