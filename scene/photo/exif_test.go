package photo

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	"vksplat/scene/jpeg"
	"vksplat/scene/scenetest"
)

// segmentOf is a segment of JPEG.
func segmentOf(marker uint8, content string) string {
	return string([]byte{0xFF, marker, uint8((len(content) + 2) >> 8), uint8(len(content) + 2)}) + content
}

// withExif gives photos of each kind that hold an EXIF block.
func withExif(t testing.TB, block []byte) map[string][]byte {
	data, png, lossy := readTestdata(t, "420.jpg"), readTestdata(t, "420.jpg.png"), readTestdata(t, "lossyalpha.webp")
	xmp, exif := segmentOf(jpeg.MarkerAPP1, "http://ns.adobe.com/xap/1.0/\x00<x/>"),
		segmentOf(jpeg.MarkerAPP1, "Exif\x00\x00"+string(block))
	filler := segmentOf(0xE2, string(make([]byte, 65000)))
	chunk := append(binary.LittleEndian.AppendUint32([]byte("EXIF"), uint32(len(block))), block...)
	return map[string][]byte{
		"jpeg":       bytes.Join([][]byte{data[:2], []byte(exif), data[2:]}, nil),
		"jpeg late":  bytes.Join([][]byte{data[:2], []byte(xmp + filler + filler + "\xff\xff" + exif), data[2:]}, nil),
		"png":        scenetest.WithChunk(png, "eXIf", block),
		"webp":       append(bytes.Clone(lossy), chunk...),
		"webp begun": append(bytes.Clone(lossy), append([]byte("EXIF\xff\xff\xff\xffExif\x00\x00"), block...)...),
	}
}

func TestExifOrientation(t *testing.T) {
	for want := 1; want <= 8; want++ {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for name, data := range withExif(t, scenetest.ExifBlock(order, uint16(want))) {
				if got := exifOrientation(data); got != want {
					t.Errorf("%s, %v: %d, want %d", name, order, got, want)
				}
				got, err := Orientation(scenetest.PhotoFile(t, "photo", data))
				if err != nil || got != want {
					t.Errorf("%s, %v: the file gives %d, %v, want %d", name, order, got, err, want)
				}
			}
		}
	}
}

func TestExifOrientationAbsent(t *testing.T) {
	whole := scenetest.ExifBlock(binary.LittleEndian, 6)
	shape := bytes.Clone(whole)
	shape[12+12+2] = 4 // another type
	far := bytes.Clone(whole)
	copy(far[4:], "\xff\xff\xff\xff")
	blocks := [][]byte{scenetest.ExifBlock(binary.LittleEndian, 0), scenetest.ExifBlock(binary.BigEndian, 9), shape,
		far, []byte("XX*\x00"), nil}
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
	if got, err := Orientation(filepath.Join(t.TempDir(), "gone.jpg")); got != 1 || err == nil ||
		fault.Hint(err) == "" {
		t.Errorf("missing photo: %d, %v", got, err)
	}
}

// The pixels of a turned photo come as they are stored.
func TestDecodeIgnoresOrientation(t *testing.T) {
	want, err := DecodeStored(readTestdata(t, "420.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeStored(withExif(t, scenetest.ExifBlock(binary.BigEndian, 6))["jpeg late"])
	if err != nil || got.Width != want.Width || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("the pixels differ, %v", err)
	}
}

func FuzzExifOrientation(f *testing.F) {
	for _, data := range withExif(f, scenetest.ExifBlock(binary.LittleEndian, 6)) {
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
		if again, err := Orientation(path); err != nil || again != got {
			t.Errorf("the file gives %d, %v, its bytes %d", again, err, got)
		}
	})
}
