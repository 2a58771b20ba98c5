package pointcloud

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
)

// lasFile returns a file of two points of a format, with colours of 16 or of 8 bits.
func lasFile(minor, format int, shift uint) []byte {
	size := lasShortHeader
	if minor >= 4 {
		size = lasLongHeader
	}
	const gap = 10 // between header and points
	b := make([]byte, size+gap)
	copy(b, lasMagic)
	le := binary.LittleEndian
	b[24], b[lasMinor], b[lasFormat] = 1, byte(minor), byte(format)
	le.PutUint16(b[lasHeaderSize:], uint16(size))
	le.PutUint32(b[lasFirstPoint:], uint32(size+gap))
	length := lasFormats[format].size + 3
	le.PutUint16(b[lasRecordLength:], uint16(length))
	if minor >= 4 {
		le.PutUint64(b[lasCount64:], 2)
	} else {
		le.PutUint32(b[lasCount32:], 2)
	}
	for axis := range 3 {
		le.PutUint64(b[lasScales+8*axis:], math.Float64bits(0.25))
		le.PutUint64(b[lasOffsets+8*axis:], math.Float64bits(float64(100*axis)))
	}
	for i := range 2 {
		record := make([]byte, length)
		for axis := range 3 {
			le.PutUint32(record[4*axis:], uint32(int32(-4*i+axis)))
			if at := lasFormats[format].color; at > 0 {
				le.PutUint16(record[at+2*axis:], uint16(10*(axis+1+i))<<shift)
			}
		}
		b = append(b, record...)
	}
	return b
}

func TestLAS(t *testing.T) {
	for _, c := range []struct {
		minor, format int
		shift         uint
		colors        [2][3]uint8
	}{
		{0, 0, 8, [2][3]uint8{{128, 128, 128}, {128, 128, 128}}},
		{2, 2, 8, [2][3]uint8{{10, 20, 30}, {20, 30, 40}}},
		{2, 3, 0, [2][3]uint8{{10, 20, 30}, {20, 30, 40}}},
		{4, 6, 8, [2][3]uint8{{128, 128, 128}, {128, 128, 128}}},
		{4, 7, 8, [2][3]uint8{{10, 20, 30}, {20, 30, 40}}},
		{4, 10, 8, [2][3]uint8{{10, 20, 30}, {20, 30, 40}}},
	} {
		path := filepath.Join(t.TempDir(), "scan.las")
		must.Do(t, os.WriteFile(path, lasFile(c.minor, c.format, c.shift), 0o644))
		points, notes, err := Read(path)
		want := []scene.Point{{Pos: [3]float64{0, 100.25, 200.5}, Color: c.colors[0]},
			{Pos: [3]float64{-1, 99.25, 199.5}, Color: c.colors[1]}}
		if err != nil || len(points) != 2 || points[0] != want[0] || points[1] != want[1] ||
			len(notes) > 0 {
			t.Errorf("1.%d, format %d: %v, %v, %v, want %v", c.minor, c.format, points, notes, err, want)
		}
		if n, is, err := CountLAS(path); n != 2 || !is || err != nil {
			t.Errorf("1.%d, format %d: %d points, %v, %v", c.minor, c.format, n, is, err)
		}
	}
}

func TestBrokenLAS(t *testing.T) {
	change := func(at int, x ...byte) []byte {
		b := lasFile(2, 2, 8)
		copy(b[at:], x)
		return b
	}
	for want, b := range map[string][]byte{
		"compressed":         change(lasFormat, 0x82),
		"points of format":   change(lasFormat, 11),
		"records of":         change(lasRecordLength, 25, 0),
		"points from byte":   change(lasFirstPoint, 1, 0, 0, 0),
		"there is room":      change(lasCount32, 0xFF, 0xFF, 0xFF, 0xFF),
		"of axis 0":          change(lasScales, 0, 0, 0, 0, 0, 0, 0xF0, 0x7F),
		"header: unexpected": lasFile(2, 2, 8)[:100],
		"does not begin":     {},
		"it is compressed":   []byte("\x1f\x8b\x08"),
		"1 more row of 29":   append(lasFile(2, 2, 8), make([]byte, 29)...),
	} {
		path := filepath.Join(t.TempDir(), "scan.las")
		must.Do(t, os.WriteFile(path, b, 0o644))
		if _, _, err := Read(path); !errors.Is(err, fault.ErrData) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Bytes after the last point are noted, unless they are records that the header names or waveforms.
func TestLASSurplus(t *testing.T) {
	extended := lasFile(4, 7, 8)
	binary.LittleEndian.PutUint64(extended[lasExtended:], uint64(len(extended)))
	for _, c := range []struct {
		file  []byte
		noted bool
	}{{lasFile(2, 2, 8), true}, {lasFile(4, 7, 8), true}, {extended, false}, {lasFile(3, 4, 8), false}} {
		path := filepath.Join(t.TempDir(), "scan.las")
		must.Do(t, os.WriteFile(path, append(c.file, 1, 2, 3), 0o644))
		points, notes, err := Read(path)
		if noted := strings.Contains(strings.Join(notes, " "), "3 bytes more"); err != nil || len(points) != 2 ||
			noted != c.noted {
			t.Errorf("%d bytes: %v, %q, %v", len(c.file), points, notes, err)
		}
	}
}

// Whatever a file holds, reading it gives an error, or points that are finite.
func FuzzLAS(f *testing.F) {
	f.Add(lasFile(2, 3, 8))
	f.Add(lasFile(4, 7, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		points, _, err := readLAS(bytes.NewReader(data), int64(len(data)))
		for _, p := range points {
			if err == nil && !(scene.Finite64(p.Pos[0]) && scene.Finite64(p.Pos[1]) && scene.Finite64(p.Pos[2])) {
				t.Fatal(p)
			}
		}
	})
}
