package pointcloud

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"vksplat/scene"
	"vksplat/scene/ply"
)

const lasMagic = "LASF"

// Places of what is read of the header block of LAS 1.0 to 1.4 (ASPRS, LAS specification 1.4 R15, table 3).
const (
	lasMinor        = 25
	lasHeaderSize   = 94
	lasFirstPoint   = 96
	lasFormat       = 104
	lasRecordLength = 105
	lasCount32      = 107
	lasScales       = 131
	lasOffsets      = 155
	lasExtended     = 235 // from version 1.4 on, where records follow the points; 0: none do
	lasCount64      = 247 // likewise
	lasShortHeader  = 227
	lasLongHeader   = 375
)

// lasFormats are the least bytes of a record of each format of points, where the red of its colour begins (0: without),
// and whether waveforms belong to the points.
var lasFormats = [...]struct {
	size, color int
	waves       bool
}{
	{20, 0, false}, {28, 0, false}, {26, 20, false}, {34, 28, false}, {57, 0, true}, {63, 28, true}, {30, 0, false},
	{36, 30, false}, {38, 30, false}, {59, 0, true}, {67, 30, true},
}

var errNotLAS = errors.New("it does not begin as LAS files do")

var errCompressed = errors.New("its points are compressed (LAZ), which is not read")

// grey is the colour of points without one.
const grey = 128

// lasHeader is what of the header says how points lie in the file.
type lasHeader struct {
	first, count   int64
	end            int64  // of what is no record that the header names
	note           string // of what follows the points
	size, color    int    // bytes of a record, where its colour is; 0: without
	scale, offset  [3]float64
	compressed     bool
	format, header int // header: bytes of it that were read
}

// readLAS reads the points of a file of size bytes. The note says what is wrong with its end, "" for nothing.
func readLAS(r io.Reader, size int64) (points []scene.Point, note string, err error) {
	h, err := readLASHeader(r, size)
	if err != nil {
		return nil, "", err
	}
	if _, err := io.CopyN(io.Discard, r, h.first-int64(h.header)); err != nil {
		return nil, "", fmt.Errorf("what precedes the points: %w", err)
	}
	points = make([]scene.Point, h.count)
	record := make([]byte, h.size)
	bright := false // whether colours have 16 bits, as they should; many programs leave them at 8
	wide := make([][3]uint16, 0)
	if h.color > 0 {
		wide = make([][3]uint16, h.count)
	}
	for i := range points {
		if _, err := io.ReadFull(r, record); err != nil {
			return nil, "", fmt.Errorf("point %d: %w", i, err)
		}
		points[i].Color = [3]uint8{grey, grey, grey}
		for axis := range 3 {
			x := float64(int32(binary.LittleEndian.Uint32(record[4*axis:])))
			points[i].Pos[axis] = x*h.scale[axis] + h.offset[axis]
			if h.color > 0 {
				wide[i][axis] = binary.LittleEndian.Uint16(record[h.color+2*axis:])
				bright = bright || wide[i][axis] > math.MaxUint8
			}
		}
	}
	for i, c := range wide {
		for k, x := range c {
			if bright {
				x >>= 8
			}
			points[i].Color[k] = uint8(x)
		}
	}
	return points, h.note, nil
}

func readLASHeader(r io.Reader, size int64) (*lasHeader, error) {
	b := make([]byte, lasShortHeader)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	word := func(at int) int64 { return int64(binary.LittleEndian.Uint32(b[at:])) }
	short := func(at int) int { return int(binary.LittleEndian.Uint16(b[at:])) }
	h := &lasHeader{first: word(lasFirstPoint), count: word(lasCount32), size: short(lasRecordLength),
		format: int(b[lasFormat] & 0x3F), compressed: b[lasFormat]&0xC0 != 0, header: len(b), end: size}
	if minor := b[lasMinor]; minor >= 4 && short(lasHeaderSize) >= lasLongHeader {
		rest := make([]byte, lasLongHeader-len(b))
		if _, err := io.ReadFull(r, rest); err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		b = append(b, rest...)
		h.header = len(b)
		if n := binary.LittleEndian.Uint64(b[lasCount64:]); n <= math.MaxInt64 {
			h.count = int64(n)
		} else {
			h.count = math.MaxInt64
		}
		if at := binary.LittleEndian.Uint64(b[lasExtended:]); at > 0 && at < uint64(size) {
			h.end = int64(at)
		}
	}
	for axis := range 3 {
		h.scale[axis] = math.Float64frombits(binary.LittleEndian.Uint64(b[lasScales+8*axis:]))
		h.offset[axis] = math.Float64frombits(binary.LittleEndian.Uint64(b[lasOffsets+8*axis:]))
	}
	err := h.check(size)
	if err == nil {
		h.note, err = ply.Surplus("byte", h.end-h.first-h.count*int64(h.size), h.count, int64(h.size))
	}
	return h, err
}

// check judges the header of a file of size bytes, so that no number in it asks for more memory than the file holds
// points.
func (h *lasHeader) check(size int64) error {
	if h.compressed {
		return errCompressed
	}
	if h.format >= len(lasFormats) {
		return fmt.Errorf("points of format %d: 0 to %d are known", h.format, len(lasFormats)-1)
	}
	f := lasFormats[h.format]
	if h.size < f.size {
		return fmt.Errorf("records of %d bytes: points of format %d take %d", h.size, h.format, f.size)
	}
	h.color = f.color
	if f.waves {
		h.end = 0 // waveforms follow the points
	}
	if h.first < int64(h.header) || h.first > size {
		return fmt.Errorf("points from byte %d on: the file has %d, its header %d", h.first, size, h.header)
	}
	if held := (size - h.first) / int64(h.size); h.count > held {
		return fmt.Errorf("%d points announced: there is room for %d", h.count, held)
	}
	for axis := range 3 {
		far := math.Abs(h.scale[axis])*(1<<31) + math.Abs(h.offset[axis])
		if !scene.Finite64(far) {
			return fmt.Errorf("scale %g and offset %g of axis %d: %w", h.scale[axis], h.offset[axis], axis,
				scene.ErrNotFinite)
		}
	}
	return nil
}
