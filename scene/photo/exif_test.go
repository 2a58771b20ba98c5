package photo

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
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

// TestTakenWith tells cameras, lenses and focal lengths apart, and takes nothing of broken blocks.
func TestTakenWith(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		a, b := cameraBlock(order, "Phone 5", 42), cameraBlock(order, "Phone 5", 60)
		for name, data := range withExif(t, a) {
			file := scenetest.PhotoFile(t, "photo", data)
			if got := TakenWith(file); got != "|Phone 5||42/10" {
				t.Errorf("%s, %v: taken with %q", name, order, got)
			}
		}
		for name, data := range withExif(t, b) {
			if got := TakenWith(scenetest.PhotoFile(t, "photo", data)); got != "|Phone 5||60/10" {
				t.Errorf("%s, %v: taken with %q", name, order, got)
			}
		}
		for n := range a {
			for _, data := range withExif(t, a[:n]) {
				_ = TakenWith(scenetest.PhotoFile(t, "photo", data)) // which must not panic
			}
		}
	}
	if got := TakenWith("none"); got != "" {
		t.Errorf("no file is taken with %q", got)
	}
}

// TestStops reads how much light photos got, and nothing where EXIF does not have all of it.
func TestStops(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		whole := lightBlock(order, [2]uint32{1, 50}, 400, [2]uint32{40, 10})
		for name, data := range withExif(t, whole) {
			got, known := Stops(scenetest.PhotoFile(t, "photo", data))
			if want := math.Log2(400. / 50 / 16); !known || math.Abs(got-want) > 1e-12 {
				t.Errorf("%s, %v: %g, %t, want %g", name, order, got, known, want)
			}
		}
		blocks := [][]byte{lightBlock(order, [2]uint32{0, 50}, 400, [2]uint32{40, 10}), cameraBlock(order, "Phone", 42),
			lightBlock(order, [2]uint32{1, 50}, 0, [2]uint32{40, 10}),
			lightBlock(order, [2]uint32{1, 50}, 400, [2]uint32{4, 0})}
		for n := range whole {
			blocks = append(blocks, whole[:n])
		}
		for i, block := range blocks {
			for name, data := range withExif(t, block) {
				if got, known := Stops(scenetest.PhotoFile(t, "photo", data)); known {
					t.Errorf("%s, block %d: %g", name, i, got)
				}
			}
		}
	}
}

// lightBlock is an EXIF block with an exposure time, a sensitivity and an f-number.
func lightBlock(order binary.AppendByteOrder, time [2]uint32, iso uint16, f [2]uint32) []byte {
	head := "II*\x00"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		head = "MM\x00*"
	}
	entry := func(b []byte, tag, kind uint16) []byte {
		return order.AppendUint32(order.AppendUint16(order.AppendUint16(b, tag), kind), 1)
	}
	b := order.AppendUint32([]byte(head), 8)
	b = order.AppendUint16(b, 1)
	b = order.AppendUint32(entry(b, tagExif, 4), 26)
	b = order.AppendUint32(b, 0)
	b = order.AppendUint16(b, 3) // at 26
	b = order.AppendUint32(entry(b, tagExposureTime, 5), 68)
	b = order.AppendUint32(entry(b, tagFNumber, 5), 76)
	b = order.AppendUint16(order.AppendUint16(entry(b, tagSensitivity, 3), iso), 0)
	b = order.AppendUint32(b, 0)
	for _, x := range [4]uint32{time[0], time[1], f[0], f[1]} { // at 68
		b = order.AppendUint32(b, x)
	}
	return b
}

// TestFocalLength reads the focal length on film of 36 mm, and nothing where EXIF has none.
func TestFocalLength(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		whole := filmBlock(order, 27)
		for name, data := range withExif(t, whole) {
			if got, known := FocalLength(scenetest.PhotoFile(t, "photo", data)); !known || got != 0.75 {
				t.Errorf("%s, %v: %g, %t", name, order, got, known)
			}
		}
		blocks := [][]byte{filmBlock(order, 0), cameraBlock(order, "Phone", 42)}
		for n := range 48 { // up to the number itself
			blocks = append(blocks, whole[:n])
		}
		for i, block := range blocks {
			for name, data := range withExif(t, block) {
				if got, known := FocalLength(scenetest.PhotoFile(t, "photo", data)); known {
					t.Errorf("%s, block %d: %g", name, i, got)
				}
			}
		}
	}
	if got, known := FocalLength("none"); known {
		t.Errorf("no file has a focal length of %g", got)
	}
}

// filmBlock is an EXIF block with a focal length on film of 36 mm.
func filmBlock(order binary.AppendByteOrder, focal uint16) []byte {
	b := cameraBlock(order, "Phone", 42)
	at := b[40:52] // the entry of the focal length
	clear(at)
	copy(at, order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, tagFocalIn35mm), 3), 1))
	copy(at[8:], order.AppendUint16(nil, focal))
	return b[:56+len("Phone")+1]
}

// cameraBlock is an EXIF block with the model of a camera and a focal length in tenths of millimetres.
func cameraBlock(order binary.AppendByteOrder, model string, focal uint32) []byte {
	head := "II*\x00"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		head = "MM\x00*"
	}
	entry := func(b []byte, tag, kind uint16, count, value uint32) []byte {
		b = order.AppendUint16(order.AppendUint16(b, tag), kind)
		return order.AppendUint32(order.AppendUint32(b, count), value)
	}
	b := order.AppendUint32([]byte(head), 8)
	b = order.AppendUint16(b, 2)
	b = entry(b, tagModel, 2, uint32(len(model)+1), 56)
	b = entry(b, tagExif, 4, 1, 38)
	b = order.AppendUint32(b, 0)
	b = order.AppendUint16(b, 1) // at 38
	b = entry(b, tagFocalLength, 5, 1, 72)
	b = order.AppendUint32(b, 0)
	b = append(b, model...) // at 56
	b = append(b, make([]byte, 72-len(b))...)
	return order.AppendUint32(order.AppendUint32(b, focal), 10)
}

func TestExifOrientationAbsent(t *testing.T) {
	whole := scenetest.ExifBlock(binary.LittleEndian, 6)
	shape := bytes.Clone(whole)
	shape[12+12+2] = 4 // another type
	text := bytes.Clone(whole)
	text[12+12+2], text[12+12+8] = 2, '6'
	far := bytes.Clone(whole)
	copy(far[4:], "\xff\xff\xff\xff")
	blocks := [][]byte{scenetest.ExifBlock(binary.LittleEndian, 0), scenetest.ExifBlock(binary.BigEndian, 9), shape,
		text, far, []byte("XX*\x00"), nil}
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
		must.Do(t, os.WriteFile(path, data, 0o600))
		if again, err := Orientation(path); err != nil || again != got {
			t.Errorf("the file gives %d, %v, its bytes %d", again, err, got)
		}
	})
}

func exifOrientation(data []byte) int { return orientation(bytes.NewReader(data), int64(len(data))) }
