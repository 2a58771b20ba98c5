package scene

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// PLYInfo is what a splat file says beside the splats.
type PLYInfo struct {
	Format    string   // ascii, binary_little_endian or binary_big_endian
	Comments  []string // all of them, as written
	Meta      PLYMeta  // the comments this program writes, parsed; Meta.Comments holds the others
	Ignored   []string // vertex properties that mean nothing to a splat; normals are not listed
	Clamped   int      // splats whose infinite logit opacity or log scale became +-30, see clampInfinite
	NonFinite int      // splats with another NaN or infinite number, which renderers skip
}

// ReadPLY reads a model: any order of properties, any of the three encodings,
// any scalar type, SH degree 0 to MaxSHDegree by the number of f_rest
// properties. Values stay raw, infinite opacities and scales aside (see
// PLYInfo.Clamped), and in the frame of the file. Memory is bounded by the
// file's size whatever the header claims. Errors are of kind ErrData.
func ReadPLY(path string) (*Splats, PLYInfo, error) {
	var s *Splats
	var info PLYInfo
	err := openPLY(path, func(r io.Reader, size int64) (err error) {
		s, info, err = decodeSplats(r, size)
		return err
	})
	if err != nil {
		return nil, PLYInfo{}, err
	}
	return s, info, nil
}

// DecodePLY is ReadPLY for a stream of size bytes.
func DecodePLY(r io.Reader, size int64) (*Splats, PLYInfo, error) {
	s, info, err := decodeSplats(r, size)
	if err != nil {
		return nil, PLYInfo{}, plyError("", err)
	}
	return s, info, nil
}

// openPLY opens a file, passes it to read with its size and names it in errors.
func openPLY(path string, read func(r io.Reader, size int64) error) error {
	if isDir(path) {
		return plyError(path, &hinted{errors.New("it is a folder"), "name the .ply file in it, for example point_cloud/iteration_30000/point_cloud.ply"})
	}
	if err := regular(path); err != nil {
		return plyError(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return plyError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return plyError(path, err)
	}
	return plyError(path, read(f, info.Size()))
}

// hinted carries a remedy from the place that knows it to Error.
type hinted struct {
	error
	hint string
}

// plyError turns an error into one of kind ErrData, nil into nil.
func plyError(path string, err error) error {
	if err == nil {
		return nil
	}
	out := &Error{Op: "read ply", Path: path, Err: trimPath(err)}
	var h *hinted
	switch {
	case errors.As(err, &h):
		out.Hint = h.hint
	case errors.Is(err, os.ErrNotExist):
		out.Hint = "check the spelling of the path"
	case errors.Is(err, os.ErrPermission):
		out.Hint, out.Kind = "make the file readable for this user", ErrTryAgain
	default:
		out.Hint = "the file may be cut short or not a PLY file: copy or export it again"
	}
	return out
}

// columns maps what a splat needs to columns of the vertex element.
type columns struct {
	position, scale [3]int
	opacity         int
	quat            [4]int
	sh              []int // [3K] coefficient-major, as in Splats.SH
	degree          int
}

func decodeSplats(r io.Reader, size int64) (*Splats, PLYInfo, error) {
	p, err := newPLYReader(r, size)
	if err != nil {
		return nil, PLYInfo{}, err
	}
	cols, ignored, err := splatColumns(p.vertex())
	if err != nil {
		return nil, PLYInfo{}, err
	}
	info := PLYInfo{Format: p.header.name, Comments: p.header.comments, Meta: parseMeta(p.header.comments), Ignored: ignored}
	s := NewSplats(int(p.vertex().count), cols.degree)
	err = p.rows(func(i int, row []float64) {
		if cols.clampInfinite(row) {
			info.Clamped++
		}
		if !cols.store(s, i, row) {
			info.NonFinite++
		}
	})
	if err != nil {
		return nil, PLYInfo{}, err
	}
	return s, info, nil
}

// InfiniteLog stands for infinity in the logit of an opacity and the logarithm of
// a scale: 1/(1+exp(-30)) is 1 in float32, exp(-30) is far below any pixel.
const InfiniteLog = 30

// clampInfinite makes +-Inf finite where it has a meaning, and tells whether
// it did: converters write an opacity of 255/255 as the logit +Inf and a
// scale of zero as the logarithm -Inf.
func (c *columns) clampInfinite(row []float64) bool {
	clamped := false
	if math.IsInf(row[c.opacity], 0) {
		row[c.opacity] = math.Copysign(InfiniteLog, row[c.opacity])
		clamped = true
	}
	for _, column := range c.scale {
		if math.IsInf(row[column], -1) {
			row[column] = -InfiniteLog
			clamped = true
		}
	}
	return clamped
}

// store copies a row into splat i and tells whether all of it is finite.
func (c *columns) store(s *Splats, i int, row []float64) bool {
	finite := true
	get := func(column int) float32 {
		v := float32(row[column])
		finite = finite && finite32(v)
		return v
	}
	for axis := range 3 {
		s.Means[3*i+axis] = get(c.position[axis])
		s.LogScales[3*i+axis] = get(c.scale[axis])
	}
	for j, column := range c.quat {
		s.Quats[4*i+j] = get(column)
	}
	s.LogitOpacities[i] = get(c.opacity)
	for j, column := range c.sh {
		s.SH[len(c.sh)*i+j] = get(column)
	}
	return finite
}

// splatColumns finds the columns of a splat; ignored are the names left over.
func splatColumns(e *plyElement) (c columns, ignored []string, err error) {
	if e.index("packed_position") >= 0 {
		return c, nil, &hinted{errors.New("it is a compressed PLY (packed_position), which is not read here"),
			"convert it first: vksplat convert in.compressed.ply out.ply"}
	}
	if c.degree, err = degreeOf(e); err != nil {
		return c, nil, err
	}
	find := columnFinder{element: e, used: make([]bool, len(e.properties))}
	for axis, name := range []string{"x", "y", "z"} {
		c.position[axis] = find.column(name)
		c.scale[axis] = find.column("scale_" + strconv.Itoa(axis))
	}
	c.opacity = find.column("opacity")
	for j := range c.quat {
		c.quat[j] = find.column("rot_" + strconv.Itoa(j))
	}
	k := SHCoefficients(c.degree)
	c.sh = make([]int, 3*k)
	for channel := range 3 {
		c.sh[channel] = find.column("f_dc_" + strconv.Itoa(channel))
		for j := 1; j < k; j++ {
			c.sh[3*j+channel] = find.column("f_rest_" + strconv.Itoa(channel*(k-1)+j-1))
		}
	}
	if len(find.missing) > 0 {
		return c, nil, &hinted{fmt.Errorf("element vertex lacks %s", strings.Join(find.missing, ", ")),
			"this is not a model of splats; point clouds and meshes have no f_dc, opacity, scale and rot"}
	}
	return c, find.unused(), nil
}

// degreeOf derives the SH degree from the number of f_rest properties.
func degreeOf(e *plyElement) (int, error) {
	n := 0
	for _, p := range e.properties {
		if strings.HasPrefix(p.name, "f_rest_") {
			n++
		}
	}
	for degree := range MaxSHDegree + 1 {
		if n == 3*(SHCoefficients(degree)-1) {
			return degree, nil
		}
	}
	return 0, &hinted{fmt.Errorf("element vertex has %d f_rest properties", n),
		"SH degrees 0 to 3 have 0, 9, 24 or 45 of them; export the model at one of these degrees"}
}

// columnFinder looks up scalar columns by name, noting what is missing.
type columnFinder struct {
	element *plyElement
	used    []bool
	missing []string
}

func (f *columnFinder) column(name string) int {
	i := f.element.index(name)
	if i < 0 || f.element.properties[i].list {
		f.missing = append(f.missing, name)
		return 0
	}
	f.used[i] = true
	return i
}

// unused lists the properties nobody asked for, normals aside.
func (f *columnFinder) unused() []string {
	var out []string
	for i, p := range f.element.properties {
		if !f.used[i] && p.name != "nx" && p.name != "ny" && p.name != "nz" {
			out = append(out, p.name)
		}
	}
	return out
}

// plyReader reads the rows of the vertex element.
type plyReader struct {
	r        *bufio.Reader
	header   *plyHeader
	order    binary.ByteOrder
	vertexID int
	row      []byte
	values   []float64
}

// newPLYReader parses the header, checks it against the size of the file and
// skips to the first vertex.
func newPLYReader(r io.Reader, size int64) (*plyReader, error) {
	p := &plyReader{r: bufio.NewReaderSize(r, 1<<18), order: binary.LittleEndian}
	var err error
	if p.header, err = readPLYHeader(p.r); err != nil {
		return nil, err
	}
	if p.header.format == plyBig {
		p.order = binary.BigEndian
	}
	if p.vertexID, err = p.header.vertex(size); err != nil {
		return nil, err
	}
	for i := range p.vertexID {
		if err := p.skip(&p.header.elements[i]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *plyReader) vertex() *plyElement { return &p.header.elements[p.vertexID] }

// skip reads over an element that stands before the vertices.
func (p *plyReader) skip(e *plyElement) error {
	if p.header.format != plyASCII && !e.hasList() {
		_, err := io.CopyN(io.Discard, p.r, e.count*e.rowBytes(p.header.format))
		return shortFile(err, e, 0)
	}
	if len(e.properties) == 0 {
		return nil
	}
	return p.each(e, func(int, []float64) {})
}

// rows calls f with every vertex in order. A list shows as its length.
func (p *plyReader) rows(f func(i int, row []float64)) error { return p.each(p.vertex(), f) }

func (p *plyReader) each(e *plyElement, f func(i int, row []float64)) error {
	read := p.variableRow
	if p.header.format != plyASCII && !e.hasList() {
		read = p.fixedRow
		p.row = make([]byte, e.rowBytes(p.header.format))
	}
	p.values = make([]float64, len(e.properties))
	for i := range int(e.count) {
		if err := read(e); err != nil {
			return shortFile(err, e, i)
		}
		f(i, p.values)
	}
	return nil
}

// shortFile says where the file ended.
func shortFile(err error, e *plyElement, i int) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends in element %s, row %d of %d", e.name, i, e.count)
	}
	if err != nil {
		return fmt.Errorf("element %s, row %d: %w", e.name, i, err)
	}
	return nil
}

// fixedRow reads one binary row without lists in a single piece.
func (p *plyReader) fixedRow(e *plyElement) error {
	if _, err := io.ReadFull(p.r, p.row); err != nil {
		return err
	}
	b := p.row
	for i := range e.properties {
		kind := e.properties[i].kind
		p.values[i] = kind.value(b, p.order)
		b = b[kind.size():]
	}
	return nil
}

// variableRow reads one row value by value: ascii, or binary with lists.
func (p *plyReader) variableRow(e *plyElement) error {
	for i, property := range e.properties {
		kind := property.kind
		if property.list {
			kind = property.length
		}
		v, err := p.scalar(kind)
		if err != nil {
			return fmt.Errorf("property %s: %w", property.name, err)
		}
		p.values[i] = v
		if !property.list {
			continue
		}
		if v < 0 || v != math.Trunc(v) {
			return fmt.Errorf("property %s: list of length %v", property.name, v)
		}
		for n := int64(v); n > 0; n-- {
			if _, err := p.scalar(property.kind); err != nil {
				return fmt.Errorf("property %s: %w", property.name, err)
			}
		}
	}
	return nil
}

// scalar reads one value in the encoding of the file.
func (p *plyReader) scalar(kind plyKind) (float64, error) {
	if p.header.format == plyASCII {
		return p.asciiScalar()
	}
	var b [8]byte
	n := kind.size()
	if _, err := io.ReadFull(p.r, b[:n]); err != nil {
		return 0, err
	}
	return kind.value(b[:n], p.order), nil
}

// asciiScalar reads one number between white space.
func (p *plyReader) asciiScalar() (float64, error) {
	var token [64]byte
	n := 0
	for {
		c, err := p.r.ReadByte()
		if err == io.EOF && n > 0 {
			break
		}
		if err != nil {
			return 0, err
		}
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			if n > 0 {
				break
			}
			continue
		}
		if n == len(token) {
			return 0, fmt.Errorf("%q is too long for a number", token[:n])
		}
		token[n] = c
		n++
	}
	v, err := strconv.ParseFloat(string(token[:n]), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is not a number", token[:n])
	}
	return v, nil
}
