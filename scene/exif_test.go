package scene

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// exifBlock is a small TIFF whose first folder has an entry before the orientation's and one behind it.
func exifBlock(order binary.AppendByteOrder, orientation uint16) []byte {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 10)
	b = append(b, 0xAA, 0xBB) // the folder need not follow at once
	b = order.AppendUint16(b, 3)
	for _, entry := range [][2]uint16{{0x10F, 7}, {0x112, orientation}, {0x213, 8}} {
		b = order.AppendUint16(order.AppendUint16(b, entry[0]), 3)
		b = order.AppendUint16(order.AppendUint16(order.AppendUint32(b, 1), entry[1]), 0)
	}
	return b
}

// segmentOf is a segment of JPEG.
func segmentOf(marker uint8, content string) string {
	return string([]byte{0xFF, marker, uint8((len(content) + 2) >> 8), uint8(len(content) + 2)}) + content
}

// withChunk puts a chunk with a valid checksum behind the header of a PNG.
func withChunk(png []byte, kind string, content []byte) []byte {
	const header = 33
	chunk := append([]byte(kind), content...)
	sum := crcOf(chunk)
	chunk = append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), chunk...)
	return bytes.Join([][]byte{png[:header], chunk, sum, png[header:]}, nil)
}

// withExif gives photos of each kind that hold an EXIF block.
func withExif(t testing.TB, block []byte) map[string][]byte {
	jpeg, png, lossy := readTestdata(t, "420.jpg"), readTestdata(t, "420.jpg.png"), readTestdata(t, "lossyalpha.webp")
	xmp, exif := segmentOf(markerAPP1, "http://ns.adobe.com/xap/1.0/\x00<x/>"), segmentOf(markerAPP1, "Exif\x00\x00"+string(block))
	filler := segmentOf(0xE2, string(make([]byte, 65000)))
	chunk := append(binary.LittleEndian.AppendUint32([]byte("EXIF"), uint32(len(block))), block...)
	return map[string][]byte{
		"jpeg":       bytes.Join([][]byte{jpeg[:2], []byte(exif), jpeg[2:]}, nil),
		"jpeg late":  bytes.Join([][]byte{jpeg[:2], []byte(xmp + filler + filler + "\xff\xff" + exif), jpeg[2:]}, nil),
		"png":        withChunk(png, "eXIf", block),
		"webp":       append(bytes.Clone(lossy), chunk...),
		"webp begun": append(bytes.Clone(lossy), append([]byte("EXIF\xff\xff\xff\xffExif\x00\x00"), block...)...),
	}
}

func TestExifOrientation(t *testing.T) {
	for want := 1; want <= 8; want++ {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for name, data := range withExif(t, exifBlock(order, uint16(want))) {
				if got := exifOrientation(data); got != want {
					t.Errorf("%s, %v: %d, want %d", name, order, got, want)
				}
				got, err := PhotoOrientation(photoFile(t, "photo", data))
				if err != nil || got != want {
					t.Errorf("%s, %v: the file gives %d, %v, want %d", name, order, got, err, want)
				}
			}
		}
	}
}

func TestExifOrientationAbsent(t *testing.T) {
	whole := exifBlock(binary.LittleEndian, 6)
	shape := bytes.Clone(whole)
	shape[12+12+2] = 4 // another type
	far := bytes.Clone(whole)
	copy(far[4:], "\xff\xff\xff\xff")
	blocks := [][]byte{exifBlock(binary.LittleEndian, 0), exifBlock(binary.BigEndian, 9), shape, far, []byte("XX*\x00"), nil}
	for n := range 12 + 12 + 12 {
		blocks = append(blocks, whole[:n])
	}
	for _, block := range blocks {
		for name, data := range withExif(t, block) {
			if got := exifOrientation(data); got != 1 {
				t.Errorf("%s with block %q: %d", name, block, got)
			}
		}
	}
	for _, name := range []string{"420.jpg", "grayalpha.png", "lossy.webp", "lossyalpha.webp"} {
		if got := exifOrientation(readTestdata(t, name)); got != 1 {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got, err := PhotoOrientation(filepath.Join(t.TempDir(), "gone.jpg")); got != 1 || err == nil || Hint(err) == "" {
		t.Errorf("missing photo: %d, %v", got, err)
	}
}

// The pixels of a turned photo come as they are stored.
func TestDecodeIgnoresOrientation(t *testing.T) {
	want, err := decodePhoto(readTestdata(t, "420.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodePhoto(withExif(t, exifBlock(binary.BigEndian, 6))["jpeg late"])
	if err != nil || got.Width != want.Width || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("the pixels differ, %v", err)
	}
}

// monstree_exif has 19 photos that a viewer turns.
func TestOrientationOfCapture(t *testing.T) {
	files, _ := filepath.Glob("../../shared/data/monstree_exif/images/*.JPG") // the pattern is well-formed
	if len(files) == 0 {
		t.Skip("the capture monstree_exif is not beside the repository")
	}
	counts := map[int]int{}
	for _, f := range files {
		v, err := PhotoOrientation(f)
		if err != nil {
			t.Fatal(err)
		}
		counts[v]++
	}
	if fmt.Sprint(counts) != "map[1:4 6:19]" {
		t.Errorf("orientations %v", counts)
	}
}

func FuzzExifOrientation(f *testing.F) {
	for _, data := range withExif(f, exifBlock(binary.LittleEndian, 6)) {
		if len(data) < 1<<16 {
			f.Add(data)
		}
	}
	path := filepath.Join(f.TempDir(), "photo")
	f.Fuzz(func(t *testing.T, data []byte) {
		got := exifOrientation(data)
		if got < 1 || got > 8 {
			t.Errorf("orientation %d", got)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if again, err := PhotoOrientation(path); err != nil || again != got {
			t.Errorf("the file gives %d, %v, its bytes %d", again, err, got)
		}
	})
}
