package photo

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
)

// Tags of EXIF that tell cameras and lenses apart.
const (
	tagMake        = 0x10f
	tagModel       = 0x110
	tagExif        = 0x8769
	tagFocalLength = 0x920a
	tagLensModel   = 0xa434
)

// TakenWith names the camera that a photo was taken with, its lens and the focal length, as EXIF has them; "" where it
// says nothing. It is there to compare: photos with the same text may share a calibration.
func TakenWith(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data := exifOf(f, info.Size())
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(data) < 8:
		return ""
	case string(data[:4]) == "MM\x00*":
		order = binary.BigEndian
	case string(data[:4]) != "II*\x00":
		return ""
	}
	first := exifTags(data, order, order.Uint32(data[4:]))
	second := map[uint16]string{}
	if at, has := first[tagExif]; has {
		var offset uint32
		if _, err := fmt.Sscan(at, &offset); err == nil {
			second = exifTags(data, order, offset)
		}
	}
	parts := []string{first[tagMake], first[tagModel], second[tagLensModel], second[tagFocalLength]}
	if strings.Join(parts, "") == "" {
		return ""
	}
	return strings.Join(parts, "|")
}

// exifOf returns the EXIF block of a photo, a small TIFF file; nil where there is none.
func exifOf(r io.ReaderAt, size int64) []byte {
	head := make([]byte, riffHeader)
	n, _ := r.ReadAt(head, 0) // a shorter file has none
	head = head[:n]
	var exif []byte
	switch {
	case isJPEG(head):
		exif = jpegExif(io.NewSectionReader(r, 0, size))
	case isPNG(head):
		exif = chunkExif(r, size, true)
	case isWebP(head):
		exif = chunkExif(r, size, false)
	}
	return bytes.TrimPrefix(exif, []byte("Exif\x00\x00"))
}

// exifTags reads the texts, offsets and fractions of a folder of tags.
func exifTags(data []byte, order binary.ByteOrder, offset uint32) map[uint16]string {
	const typeText, typeLong, typeFraction, entrySize = 2, 4, 5, 12
	tags := map[uint16]string{}
	at := uint64(offset)
	if at+2 > uint64(len(data)) {
		return tags
	}
	entries := data[at+2:]
	for range order.Uint16(data[at:]) {
		if len(entries) < entrySize {
			break
		}
		e := entries[:entrySize]
		entries = entries[entrySize:]
		value, count := uint64(order.Uint32(e[8:])), uint64(order.Uint32(e[4:]))
		switch order.Uint16(e[2:]) {
		case typeText:
			text := e[8:12]
			if count > 4 {
				if value+count > uint64(len(data)) {
					continue
				}
				text = data[value : value+count]
			}
			tags[order.Uint16(e)] = strings.TrimSpace(strings.Trim(string(text[:min(count, uint64(len(text)))]), "\x00"))
		case typeLong:
			tags[order.Uint16(e)] = fmt.Sprint(value)
		case typeFraction:
			if value+8 <= uint64(len(data)) {
				tags[order.Uint16(e)] = fmt.Sprintf("%d/%d", order.Uint32(data[value:]), order.Uint32(data[value+4:]))
			}
		}
	}
	return tags
}
