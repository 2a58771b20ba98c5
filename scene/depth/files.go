package depth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/pixelpool"
	"vksplat/scene"
)

const hintMap = "maps are PNG files of 16 bits, or NPY or EXR files of floats"

// readFile reads a map by the extension of its name.
func readFile(file string) (*mapFile, error) {
	err := fault.Regular(file)
	var data []byte
	if err == nil {
		data, err = pixelpool.ReadFile(file)
	}
	if err != nil {
		return nil, &fault.Error{Op: opMaps, Path: file, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
			Hint: hintMap}
	}
	defer pixelpool.FreeFile(data)
	var m *mapFile
	switch path.Ext(file) {
	case ".png":
		m, err = decodePNG(data)
	case ".npy":
		m, err = decodeNPY(data)
	default:
		m, err = decodeEXR(data)
	}
	if err != nil {
		return nil, &fault.Error{Op: opMaps, Path: file, Err: err, Hint: hintMap}
	}
	return m, nil
}

// newMap makes a map, of a size that data of so many bytes may hold.
func newMap(width, height, bytes int) (*mapFile, error) {
	const mostPerByte = 1 << 14 // as of photos, which deflate packs
	if err := scene.Plausible(width, height, mostPerByte, bytes); err != nil {
		return nil, err
	}
	return &mapFile{width, height, make([]float32, width*height)}, nil
}

// decodePNG reads 16 bits of grey, as whole numbers.
func decodePNG(data []byte) (*mapFile, error) {
	head, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	m, err := newMap(head.Width, head.Height, len(data))
	if err != nil {
		return nil, err
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	grey, deep := img.(*image.Gray16)
	if !deep {
		return nil, errors.New("it has no grey of 16 bits, and fewer are too coarse for depths")
	}
	for i := range m.values {
		m.values[i] = float32(binary.BigEndian.Uint16(grey.Pix[i/m.width*grey.Stride+2*(i%m.width):]))
	}
	return m, nil
}

// npyHeader finds what a header of NPY says.
var npyHeader = regexp.MustCompile(
	`'descr': *'([<|>=]?[a-z]\d)'.*'fortran_order': *False.*'shape': *\((\d+), *(\d+)(?:, *1)?,? *\)`)

// decodeNPY reads an array of NumPy of two dimensions, of floats or whole numbers.
func decodeNPY(data []byte) (*mapFile, error) {
	if !bytes.HasPrefix(data, []byte("\x93NUMPY")) || len(data) < 12 {
		return nil, errors.New("it is no NPY file")
	}
	start, n := 10, int(binary.LittleEndian.Uint16(data[8:]))
	if data[6] > 1 {
		start, n = 12, int(min(binary.LittleEndian.Uint32(data[8:]), math.MaxInt32))
	}
	if n > len(data)-start {
		return nil, errors.New("the file ends early")
	}
	found := npyHeader.FindStringSubmatch(string(data[start : start+n]))
	if found == nil {
		return nil, fmt.Errorf("its array is none of rows and columns of numbers: %.100q", data[start:start+n])
	}
	height, errH := strconv.Atoi(found[2])
	width, errW := strconv.Atoi(found[3])
	if err := errors.Join(errH, errW); err != nil {
		return nil, err
	}
	data = data[start+n:]
	m, err := newMap(width, height, len(data))
	if err != nil {
		return nil, err
	}
	kind := strings.TrimLeft(found[1], "<|=")
	read, size := npyValue(kind)
	if read == nil {
		return nil, fmt.Errorf("its numbers are %s, want f2, f4, f8, u2 or u4 with the low byte first", found[1])
	}
	if len(data) < size*len(m.values) {
		return nil, errors.New("the file ends early")
	}
	for i := range m.values {
		m.values[i] = read(data[i*size:])
	}
	return m, nil
}

// npyValue returns how a kind of number is read, and its bytes.
func npyValue(kind string) (read func(b []byte) float32, size int) {
	le := binary.LittleEndian
	switch kind {
	case "f2":
		return func(b []byte) float32 { return halfValue(le.Uint16(b)) }, 2
	case "f4":
		return func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) }, 4
	case "f8":
		return func(b []byte) float32 { return float32(math.Float64frombits(le.Uint64(b))) }, 8
	case "u2":
		return func(b []byte) float32 { return float32(le.Uint16(b)) }, 2
	case "u4":
		return func(b []byte) float32 { return float32(le.Uint32(b)) }, 4
	}
	return nil, 0
}

// halfValue returns what 16 bits of a half float mean.
func halfValue(h uint16) float32 {
	sign, exponent, fraction := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
	switch exponent {
	case 0:
		return float32(sign * math.Ldexp(fraction, -24))
	case 31:
		if fraction != 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	}
	return float32(sign * math.Ldexp(1024+fraction, exponent-25))
}
