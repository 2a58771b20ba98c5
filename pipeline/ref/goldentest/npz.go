package goldentest

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"vksplat/internal/npy"
)

// maxArrayBytes is the largest decompressed member that openNPZ accepts.
const maxArrayBytes = 1 << 30

// array is one decoded array. Exactly one of the two element slices is set: Ints for integer and bool types, Floats for
// floating point ones.
type array struct {
	DType  string    // NumPy's type string without the byte order: f4, f8, i4, i8, u1 or b1
	Shape  []int     // empty for a scalar
	Floats []float64 // elements in C order of f4 and f8 arrays
	Ints   []int64   // elements in C order of i4, i8, u1 and b1 arrays
}

// Len returns the number of elements.
func (a *array) Len() int { return len(a.Floats) + len(a.Ints) }

// Float returns element i whatever the type.
func (a *array) Float(i int) float64 {
	if a.Floats != nil {
		return a.Floats[i]
	}
	return float64(a.Ints[i])
}

// archive is a decoded .npz file: array name (without .npy) to array.
type archive struct {
	Path   string
	Arrays map[string]*array
}

// openNPZ reads every array of a .npz file of NumPy: float32, float64, int32, int64, uint8 and bool, little-endian, in
// C order. Errors name the file and the member: not a zip file, an unsupported type, Fortran order, or data that does
// not fit the shape. Memory is bounded by the size that each member's zip directory entry declares.
func openNPZ(path string) (*archive, error) {
	r, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("npz: open %s: %w", path, err)
	}
	defer r.Close()
	a := &archive{Path: path, Arrays: map[string]*array{}}
	for _, f := range r.File {
		array, err := readMember(f)
		if err != nil {
			return nil, fmt.Errorf("npz: read %s: member %s: %w", path, f.Name, err)
		}
		a.Arrays[strings.TrimSuffix(f.Name, ".npy")] = array
	}
	return a, nil
}

// readMember decompresses and decodes one .npy member.
func readMember(f *zip.File) (*array, error) {
	if f.UncompressedSize64 > maxArrayBytes {
		return nil, fmt.Errorf("%d bytes exceed the limit of %d", f.UncompressedSize64, maxArrayBytes)
	}
	rc, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	// One byte more than declared shows a member that is longer than its directory entry says.
	data, err := io.ReadAll(io.LimitReader(rc, int64(f.UncompressedSize64)+1))
	if err != nil {
		return nil, err
	}
	return decode(data)
}

// decode decodes the bytes of one .npy file (format versions 1 to 3).
func decode(data []byte) (*array, error) {
	file, err := npy.Parse(data)
	if err != nil {
		return nil, err
	}
	switch file.Kind {
	case "<f4", "<f8", "<i4", "<i8", "|u1", "|b1":
	default:
		return nil, fmt.Errorf("type %q is not supported", file.Kind)
	}
	if file.Fortran && len(file.Shape) > 1 {
		return nil, errors.New("fortran order is not supported")
	}
	a := &array{DType: file.Kind[1:], Shape: file.Shape}
	return a, a.decode(file.Data)
}

// decode fills the elements from raw little-endian bytes.
func (a *array) decode(raw []byte) error {
	width := int(a.DType[1] - '0')
	n := 1
	for _, d := range a.Shape {
		if d != 0 && n > maxArrayBytes/d {
			return fmt.Errorf("shape %v is too large", a.Shape)
		}
		n *= d
	}
	if n*width != len(raw) {
		return fmt.Errorf("shape %v of %s needs %d bytes, %d present", a.Shape, a.DType, n*width, len(raw))
	}
	if a.DType[0] == 'f' {
		a.Floats = make([]float64, n)
		for i := range a.Floats {
			if width == 4 {
				a.Floats[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
			} else {
				a.Floats[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
			}
		}
		return nil
	}
	a.Ints = make([]int64, n)
	for i := range a.Ints {
		switch width {
		case 1:
			a.Ints[i] = int64(raw[i])
		case 4:
			a.Ints[i] = int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
		default:
			a.Ints[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	}
	return nil
}
