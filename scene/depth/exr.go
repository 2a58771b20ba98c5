package depth

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"vksplat/shaders/layout"
)

// The reader of OpenEXR knows files of one part in scanlines, without compression or with ZIP, which cameras, Blender,
// Nuke and NumPy's writers make.

// Types of a channel's numbers.
const (
	exrUint = iota
	exrHalf
	exrFloat
)

// Compressions, with the scanlines of a block.
var exrLines = map[byte]int{0: 1, 2: 1, 3: 16} // none, ZIPS, ZIP

// exrFile is the header's content.
type exrFile struct {
	names       []string
	types       []uint32
	compression byte
	box         [4]int32 // left, top, right, bottom, all inside
}

// exrText reads up to a zero byte.
func exrText(data []byte) (text string, rest []byte, err error) {
	end := bytes.IndexByte(data, 0)
	if end < 0 || end > 255 {
		return "", nil, errEnds
	}
	return string(data[:end]), data[end+1:], nil
}

// readExrHeader returns what comes behind the header, too.
func readExrHeader(data []byte) (f exrFile, rest []byte, err error) {
	le := binary.LittleEndian
	if len(data) < 8 || le.Uint32(data) != 20000630 {
		return f, nil, errors.New("not an OpenEXR file")
	}
	if flags := le.Uint32(data[4:]) >> 8; flags&^4 != 0 { // long names are the one that matters not
		return f, nil, errors.New("tiled, deep and multi-part OpenEXR files are not read: save it in scanlines")
	}
	f.compression = 255
	for data = data[8:]; ; {
		var name string
		if name, data, err = exrText(data); err != nil || name == "" {
			break
		}
		if _, data, err = exrText(data); err != nil {
			break
		}
		if len(data) < 4 || uint64(le.Uint32(data)) > uint64(len(data)-4) {
			return f, nil, errEnds
		}
		value := data[4 : 4+le.Uint32(data)]
		data = data[4+len(value):]
		switch {
		case name == "channels":
			err = f.channels(value)
		case name == "compression" && len(value) == 1:
			f.compression = value[0]
		case name == "dataWindow" && len(value) == 16:
			for i := range f.box {
				f.box[i] = int32(le.Uint32(value[4*i:]))
			}
		}
		if err != nil {
			break
		}
	}
	return f, data, err
}

func (f *exrFile) channels(data []byte) (err error) {
	le := binary.LittleEndian
	for len(data) > 1 {
		var name string
		if name, data, err = exrText(data); err != nil {
			return err
		}
		if len(data) < 16 {
			return errEnds
		}
		if le.Uint32(data) > exrFloat || le.Uint32(data[8:]) != 1 || le.Uint32(data[12:]) != 1 {
			return fmt.Errorf("channel %q has fewer pixels than the picture", name)
		}
		f.names, f.types = append(f.names, name), append(f.types, le.Uint32(data))
		data = data[16:]
	}
	return nil
}

// size returns the bytes of a number of channel i.
func (f *exrFile) size(i int) int {
	if f.types[i] == exrHalf {
		return 2
	}
	return 4
}

// exrDepth returns the channel that has the depth: Z, else Y, else R, else the first.
func exrDepth(names []string) []int {
	for _, name := range []string{"Z", "Y", "R"} {
		if i := slices.Index(names, name); i >= 0 {
			return []int{i}
		}
	}
	return []int{0}
}

// exrNormals returns the channels X, Y and Z, else R, G and B, of the first layer that has all three. A layer's name
// and a dot stand before those of its channels.
func exrNormals(names []string) []int {
	for _, axes := range [...][3]string{{"X", "Y", "Z"}, {"R", "G", "B"}} {
		for i, name := range names {
			layer, found := strings.CutSuffix(name, axes[0])
			j, k := slices.Index(names, layer+axes[1]), slices.Index(names, layer+axes[2])
			if found && (layer == "" || strings.HasSuffix(layer, ".")) && j >= 0 && k >= 0 {
				return []int{i, j, k}
			}
		}
	}
	return nil
}

func decodeEXR(data []byte, form *form) (*mapFile, error) {
	f, rest, err := readExrHeader(data)
	if err != nil {
		return nil, err
	}
	lines, known := exrLines[f.compression]
	if !known || len(f.names) == 0 {
		return nil, fmt.Errorf("its compression, number %d, is not read: save it without, or with ZIP", f.compression)
	}
	width, height := int64(f.box[2])-int64(f.box[0])+1, int64(f.box[3])-int64(f.box[1])+1
	if width < 1 || height < 1 || width > math.MaxInt32 || height > math.MaxInt32 {
		return nil, errors.New("its picture has no size")
	}
	picked := form.exr(f.names)
	if picked == nil {
		return nil, fmt.Errorf("its channels are %q, want X, Y, Z or R, G, B", f.names)
	}
	m, err := newMap(int(width), int(height), form.channels, len(data))
	if err != nil {
		return nil, err
	}
	blocks := (m.height + lines - 1) / lines
	if len(rest) < 8*blocks {
		return nil, errEnds
	}
	for b := range blocks {
		if err := f.block(m, picked, data, binary.LittleEndian.Uint64(rest[8*b:]), lines); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// block reads the picked channels of the scanlines at a place of the file.
func (f *exrFile) block(m *mapFile, picked []int, data []byte, at uint64, lines int) error {
	le := binary.LittleEndian
	if at > uint64(len(data)) || uint64(len(data))-at < 8 {
		return errEnds
	}
	first, size := int64(int32(le.Uint32(data[at:])))-int64(f.box[1]), uint64(le.Uint32(data[at+4:]))
	if first < 0 || first >= int64(m.height) || size > uint64(len(data))-at-8 {
		return errEnds
	}
	packed := data[at+8 : at+8+size]
	n, line := min(lines, m.height-int(first)), 0
	befores := make([]int, len(f.names)) // bytes of a scanline before each channel
	for i := range f.names {
		befores[i] = line
		line += f.size(i) * m.width
	}
	raw, err := f.unpack(packed, n*line)
	if err != nil {
		return err
	}
	for y := range n {
		for k, i := range picked {
			row := raw[y*line+befores[i]:]
			for x := range m.width {
				m.values[((int(first)+y)*m.width+x)*m.channels+k] = f.value(i, row[f.size(i)*x:])
			}
		}
	}
	return nil
}

// value reads a number of channel i.
func (f *exrFile) value(i int, b []byte) float32 {
	le := binary.LittleEndian
	switch f.types[i] {
	case exrHalf:
		return layout.HalfValue(le.Uint16(b))
	case exrFloat:
		return math.Float32frombits(le.Uint32(b))
	}
	return float32(le.Uint32(b))
}

// unpack returns a block of the given size. What compression does not make smaller is stored as it is.
func (f *exrFile) unpack(packed []byte, size int) ([]byte, error) {
	if len(packed) == size {
		return packed, nil
	}
	if f.compression == 0 || len(packed) > size {
		return nil, errEnds
	}
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	mixed := make([]byte, size)
	if _, err := io.ReadFull(z, mixed); err != nil {
		return nil, err
	}
	// Each byte is the difference from the one before, and even bytes come in front of odd ones.
	for i := 1; i < size; i++ {
		mixed[i] += mixed[i-1] - 128
	}
	raw := make([]byte, size)
	for i := range raw {
		raw[i] = mixed[i/2+i%2*((size+1)/2)]
	}
	return raw, nil
}
