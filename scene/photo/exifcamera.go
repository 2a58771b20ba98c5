package photo

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"vksplat/internal/fault"
)

// Tags of EXIF that tell cameras and lenses apart, and how much light a photo got.
const (
	tagMake         = 0x10f
	tagModel        = 0x110
	tagOrientation  = 0x112
	tagExposureTime = 0x829a
	tagFNumber      = 0x829d
	tagExif         = 0x8769
	tagSensitivity  = 0x8827
	tagFocalLength  = 0x920a
	tagFocalIn35mm  = 0xa405
	tagLensModel    = 0xa434
)

// FocalLength returns the focal length of a photo in lengths of its longer side, by what EXIF says that it would be on
// film of 36 mm; known is false where it does not say.
func FocalLength(path string) (focal float64, known bool) {
	_, tags := exifFolders(path)
	focal = fraction(tags[tagFocalIn35mm]) / 36
	return focal, focal > 0
}

// TakenWith names the camera that a photo was taken with, its lens and the focal length, as EXIF has them; "" where it
// says nothing. It is there to compare: photos with the same text may share a calibration.
func TakenWith(path string) string {
	first, second := exifFolders(path)
	parts := []string{first[tagMake], first[tagModel], second[tagLensModel], second[tagFocalLength]}
	if strings.Join(parts, "") == "" {
		return ""
	}
	return strings.Join(parts, "|")
}

// IsPanorama reports whether a photo's metadata says that it is equirectangular, as Google's Photo Sphere XMP does it.
func IsPanorama(path string) bool {
	f, _, err := fault.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()               // only read from
	head := make([]byte, 256<<10) // XMP is at the front, behind EXIF, and both have at most 64 KiB
	n, _ := io.ReadFull(f, head)  // a shorter file has less
	return panoramaXMP.Match(head[:n])
}

var panoramaXMP = regexp.MustCompile(`GPano:ProjectionType(=["']|>)\s*equirectangular`)

// Stops returns the base-2 logarithm of what the settings of a photo multiply the scene's light by: of exposure time
// times ISO sensitivity by the square of the f-number. known is false where EXIF does not have all three.
func Stops(path string) (stops float64, known bool) {
	_, tags := exifFolders(path)
	time, iso, f := fraction(tags[tagExposureTime]), fraction(tags[tagSensitivity]), fraction(tags[tagFNumber])
	if !(time > 0 && iso > 0 && f > 0) {
		return 0, false
	}
	return math.Log2(time * iso / (f * f)), true
}

// fraction reads a number or a fraction; 0 is what it makes of anything else.
func fraction(text string) float64 {
	list, _ := fractions(text, 1)
	return list[0]
}

// fractions reads numbers or fractions, which are zeros if ok is false.
func fractions(text string, n int) (list []float64, ok bool) {
	list, parts := make([]float64, n), strings.Fields(text)
	if len(parts) != n {
		return list, false
	}
	for i, p := range parts {
		above, below, _ := strings.Cut(p, "/")
		x, err := strconv.ParseUint(above, 10, 32)
		by, err2 := strconv.ParseUint(cmp.Or(below, "1"), 10, 32)
		if err != nil || err2 != nil || by == 0 {
			return make([]float64, n), false
		}
		list[i] = float64(x) / float64(by)
	}
	return list, true
}

// exifFolders reads the two folders of tags in a photo's EXIF block, empty ones where there are none.
func exifFolders(path string) (first, second map[uint16]string) { return tiffFolders(exifAt(path)) }

// exifAt reads a photo's EXIF block, nil where there is none.
func exifAt(path string) []byte {
	f, size, err := fault.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() // only read from
	return exifOf(f, size)
}

// byteOrder returns that of an EXIF block, a small TIFF file; nil if it is none.
func byteOrder(data []byte) binary.ByteOrder {
	switch {
	case len(data) < 8:
	case string(data[:4]) == "MM\x00*":
		return binary.BigEndian
	case string(data[:4]) == "II*\x00":
		return binary.LittleEndian
	}
	return nil
}

// tiffFolders reads the two folders of tags in what an EXIF block holds.
func tiffFolders(data []byte) (first, second map[uint16]string) {
	order := byteOrder(data)
	if order == nil {
		return nil, nil
	}
	first = exifTags(data, order, order.Uint32(data[4:]))
	if at, err := strconv.ParseUint(first[tagExif], 10, 32); err == nil {
		second = exifTags(data, order, uint32(at))
	}
	return first, second
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

// exifTags reads the texts, whole numbers and fractions of a folder of tags.
func exifTags(data []byte, order binary.ByteOrder, offset uint32) map[uint16]string {
	const typeByte, typeText, typeShort, typeLong, typeFraction, entrySize = 1, 2, 3, 4, 5, 12
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
		tag, kind := order.Uint16(e), order.Uint16(e[2:])
		if tag == tagOrientation && kind != typeShort { // which means nothing
			continue
		}
		switch kind {
		case typeByte:
			tags[tag] = fmt.Sprint(e[8])
		case typeText:
			text := e[8:12]
			if count > 4 {
				if value+count > uint64(len(data)) {
					continue
				}
				text = data[value : value+count]
			}
			tags[tag] = strings.TrimSpace(strings.Trim(string(text[:min(count, uint64(len(text)))]), "\x00"))
		case typeShort:
			tags[tag] = fmt.Sprint(order.Uint16(e[8:]))
		case typeLong:
			tags[tag] = fmt.Sprint(value)
		case typeFraction:
			tags[tag] = ""
			for range min(count, 3) { // degrees, minutes and seconds
				if value+8 <= uint64(len(data)) {
					tags[tag] += fmt.Sprintf("%d/%d ", order.Uint32(data[value:]), order.Uint32(data[value+4:]))
				}
				value += 8
			}
			tags[tag] = strings.TrimSpace(tags[tag])
		}
	}
	return tags
}
