package depth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"path"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/npy"
	"vksplat/internal/pixelpool"
	"vksplat/scene"
	"vksplat/shaders/layout"
)

// form is the file format of one kind of maps.
type form struct {
	op, setting, hint string
	kind              string                                  // what render writes before the extension
	channels          int                                     // numbers of a pixel
	png               func(m *mapFile, img image.Image) error // fills the map
	exr               func(names []string) []int              // which channels of the file hold them; nil: none
}

var depthForm = form{op: opMaps, setting: "depths", kind: "depth", channels: 1, png: greyOfPNG, exr: exrDepth,
	hint: "maps are PNG files of 16 bits, or NPY or EXR files of floats"}

var (
	errEnds    = errors.New("the file ends early")
	errFortran = errors.New("its array is in Fortran order, column by column")
)

func (f *form) hintOf(err error) string {
	if errors.Is(err, errFortran) {
		return "save it row by row: np.save(file, np.ascontiguousarray(array))"
	}
	return f.hint
}

func readFile(file string, f *form) (*mapFile, error) {
	err := fault.Regular(file)
	var data []byte
	if err == nil {
		data, err = pixelpool.ReadFile(file)
	}
	if err != nil {
		return nil, &fault.Error{Op: f.op, Path: file, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
			Hint: f.hint}
	}
	defer pixelpool.FreeFile(data)
	var m *mapFile
	switch strings.ToLower(path.Ext(file)) {
	case ".png":
		m, err = decodePNG(data, f)
	case ".npy":
		m, err = decodeNPY(data, f)
	default:
		m, err = decodeEXR(data, f)
	}
	if err != nil {
		return nil, &fault.Error{Op: f.op, Path: file, Err: err, Hint: f.hintOf(err)}
	}
	return m, nil
}

// newMap makes a map whose size fits the number of bytes.
func newMap(width, height, channels, bytes int) (*mapFile, error) {
	const mostPerByte = 1 << 14 // as of photos, which deflate packs
	if err := scene.Plausible(width, height, mostPerByte, bytes); err != nil {
		return nil, err
	}
	return &mapFile{width, height, channels, make([]float32, width*height*channels)}, nil
}

func decodePNG(data []byte, f *form) (*mapFile, error) {
	head, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	m, err := newMap(head.Width, head.Height, f.channels, len(data))
	if err != nil {
		return nil, err
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return m, f.png(m, img)
}

// greyOfPNG reads 16 bits of grey, as whole numbers.
func greyOfPNG(m *mapFile, img image.Image) error {
	grey, deep := img.(*image.Gray16)
	if !deep {
		return errors.New("it has no grey of 16 bits, and fewer are too coarse for depths")
	}
	for i := range m.values {
		m.values[i] = float32(binary.BigEndian.Uint16(grey.Pix[i/m.width*grey.Stride+2*(i%m.width):]))
	}
	return nil
}

// normalsOfPNG reads red, green and blue, 0 to the most for -1 to 1. Transparent pixels have none.
func normalsOfPNG(m *mapFile, img image.Image) error {
	pixels, coloured := img.(image.RGBA64Image)
	if model := img.ColorModel(); !coloured || model == color.GrayModel || model == color.Gray16Model {
		return errors.New("it has no red, green and blue")
	}
	for i := range m.width * m.height {
		c := pixels.RGBA64At(i%m.width, i/m.width)
		if c.A < math.MaxUint16/2 {
			continue
		}
		for k, x := range [...]uint16{c.R, c.G, c.B} {
			m.values[3*i+k] = 2*float32(x)/float32(c.A) - 1
		}
	}
	return nil
}

// npyShape returns the size of a picture by an array's dimensions, of which some may be 1, and whether its numbers come
// channel by channel.
func npyShape(a *npy.Array, channels int) (width, height int, planar bool, err error) {
	sizes := a.Shape
	for len(sizes) > 3 && sizes[0] == 1 {
		sizes = sizes[1:]
	}
	switch n := len(sizes); {
	case n == 3 && sizes[2] == channels:
		return sizes[1], sizes[0], false, nil
	case n == 3 && sizes[0] == channels:
		return sizes[2], sizes[1], true, nil
	case n == 2 && channels == 1:
		return sizes[1], sizes[0], false, nil
	}
	return 0, 0, false, fmt.Errorf("its array has the sizes (%s)", a.Sizes)
}

// decodeNPY reads an array of NumPy, of floats or whole numbers.
func decodeNPY(data []byte, f *form) (*mapFile, error) {
	a, err := npy.Parse(data)
	if err != nil {
		return nil, err
	}
	if a.Fortran {
		return nil, errFortran
	}
	width, height, planar, err := npyShape(a, f.channels)
	if err != nil {
		return nil, err
	}
	data = a.Data
	m, err := newMap(width, height, f.channels, len(data))
	if err != nil {
		return nil, err
	}
	kind := strings.TrimLeft(a.Kind, "<|=")
	read, size := npyValue(kind)
	if read == nil {
		return nil, fmt.Errorf("its numbers are %s, want f2, f4, f8, u2 or u4 with the low byte first", a.Kind)
	}
	if len(data) < size*len(m.values) {
		return nil, errEnds
	}
	for i := range m.values {
		at := i
		if planar {
			at = i%f.channels*width*height + i/f.channels
		}
		m.values[i] = read(data[at*size:])
	}
	return m, nil
}

// npyValue returns how a kind of number is read, and its bytes.
func npyValue(kind string) (read func(b []byte) float32, size int) {
	le := binary.LittleEndian
	switch kind {
	case "f2":
		return func(b []byte) float32 { return layout.HalfValue(le.Uint16(b)) }, 2
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
