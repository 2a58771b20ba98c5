package ply

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/scene"
)

// Info is the metadata of a splat file.
type Info struct {
	Format    string   // ascii, binary_little_endian or binary_big_endian
	Comments  []string // all of them, as written
	Meta      Meta     // the comments this program writes, parsed; Meta.Comments holds the others
	Ignored   []string // vertex properties that mean nothing to a splat; normals are not listed
	Flat      bool     // the third scale is missing and is flatScale, as of 2D Gaussian Splatting
	Surplus   string   // what is wrong with the end of the file; "" for nothing
	Clamped   int      // splats whose infinite logit opacity or log scale became +-30, see clampInfinite
	NonFinite int      // splats with another NaN or infinite number, which renderers skip
}

// Notes says what the file holds that splats have no place for, and what else a reader should know, a clause each.
func (i *Info) Notes() (notes []string) {
	if len(i.Ignored) > 0 {
		notes = append(notes, "ignoring properties that splats do not have: "+strings.Join(i.Ignored, ", "))
	}
	if i.Flat {
		notes = append(notes, fmt.Sprintf("the splats are flat disks (2DGS): scale_2 is missing, and %g is taken",
			flatScale))
	}
	if i.Surplus != "" {
		notes = append(notes, i.Surplus)
	}
	return notes
}

// Read reads a model: any order of properties, any of the three encodings,
// any scalar type, SH degree 0 to MaxSHDegree by the number of f_rest
// properties. Values stay raw, infinite opacities and scales aside (see
// Info.Clamped), and in the frame of the file. Memory is bounded by the
// file's size whatever the header claims. Errors are of kind fault.ErrData.
func Read(path string) (*scene.Splats, Info, error) {
	f, err := Open(path)
	if err != nil {
		return nil, Info{}, err
	}
	defer f.Close() // only read
	var s *scene.Splats
	err = f.Read(f.N, func(all *scene.Splats) error {
		s = all
		return nil
	})
	if err != nil {
		return nil, Info{}, err
	}
	if s == nil {
		s = scene.NewSplats(0, f.Degree)
	}
	return s, f.Info, nil
}

// File is an open file of splats, which need not be in memory together.
type File struct {
	N, Degree int
	Info      Info // Clamped and NonFinite are known after Read, of all splats that it read

	path string
	file *os.File
	size int64
	rows *splatRows // for what the header says
	at   int64      // offset of the first splat, 0 where rows differ in size
}

// Open reads the header of a file of splats. What Read says of errors and memory holds.
func Open(path string) (*File, error) {
	file, size, err := openFile(path)
	if err != nil {
		return nil, plyError(path, err)
	}
	f := &File{path: path, file: file, size: size}
	if err := f.open(); err != nil {
		_ = file.Close() // the first error is the one to report
		return nil, plyError(path, err)
	}
	return f, nil
}

func (f *File) open() (err error) {
	if f.rows, err = newSplatRows(f.file, f.size); err != nil {
		return err
	}
	f.N, f.Degree, f.Info = f.rows.left, f.rows.cols.degree, f.rows.info
	f.at = f.rows.p.header.firstRow(f.rows.p.vertexID)
	return nil
}

// firstRow returns the offset of the first row of an element, 0 where rows differ in size.
func (h *plyHeader) firstRow(element int) int64 {
	at := h.bytes
	for i := range h.elements[:element+1] {
		e := &h.elements[i]
		if !h.fixed(e) {
			return 0
		}
		if i < element {
			at += e.count * e.rowBytes(h.format)
		}
	}
	return at
}

// Read hands all splats to put, in order, in pieces of that size. A piece belongs to put until it returns. What put
// returns is returned as it is.
func (f *File) Read(pieceSplats int, put func(piece *scene.Splats) error) error {
	rows, err := newSplatRows(io.NewSectionReader(f.file, 0, f.size), f.size)
	if err != nil {
		return plyError(f.path, err) // the file was changed since
	}
	if rows.left != f.N || rows.cols.degree != f.Degree {
		return plyError(f.path, fmt.Errorf("the file changed while it was read"))
	}
	room := scene.NewSplats(min(f.N, pieceSplats), f.Degree)
	for rows.left > 0 {
		piece := room.Slice(0, min(rows.left, room.N))
		if err := rows.read(piece); err != nil {
			return plyError(f.path, err)
		}
		if err := put(piece); err != nil {
			return err
		}
	}
	f.Info = rows.info
	return nil
}

// AnyOrder reports whether Gather works: it needs rows of one size.
func (f *File) AnyOrder() bool { return f.at > 0 }

// Gather reads splats ids[i] into splat i of into, which holds len(ids) splats of the file's degree.
func (f *File) Gather(ids []uint32, into *scene.Splats) error {
	e, order := f.rows.p.Vertex(), f.rows.p.order
	row := make([]byte, e.rowBytes(f.rows.p.header.format))
	values := make([]float64, len(e.properties))
	for i, id := range ids {
		if int(id) >= f.N {
			return fmt.Errorf("gather splats: splat %d of %d", id, f.N)
		}
		if _, err := f.file.ReadAt(row, f.at+int64(id)*int64(len(row))); err != nil {
			return plyError(f.path, shortFile(err, e, int(id)))
		}
		e.decode(values, row, order)
		f.rows.cols.clampInfinite(values)
		f.rows.cols.store(into, i, values)
	}
	return nil
}

func (f *File) Close() error { return f.file.Close() }

// splatRows reads the splats of a file in order.
type splatRows struct {
	p     *Reader
	cols  columns
	info  Info
	left  int    // splats that have not been read
	block []byte // of rows of one size
}

func newSplatRows(r io.Reader, size int64) (*splatRows, error) {
	p, err := NewReader(r, size)
	if err != nil {
		return nil, err
	}
	cols, ignored, err := splatColumns(p.Vertex())
	if err != nil {
		return nil, err
	}
	p.begin(p.Vertex())
	info := Info{Format: p.header.name, Comments: p.header.comments, Meta: parseMeta(p.header.comments),
		Ignored: ignored, Flat: cols.scale[2] < 0, Surplus: p.note}
	return &splatRows{p: p, cols: cols, info: info, left: int(p.Vertex().count)}, nil
}

// read reads the next s.N splats, of which there are as many.
func (r *splatRows) read(s *scene.Splats) error {
	e := r.p.Vertex()
	first := int(e.count) - r.left
	if r.p.header.fixed(e) {
		return r.readFixed(s, first)
	}
	for i := range s.N {
		if err := r.p.next(e, first+i); err != nil {
			return err
		}
		r.count(r.cols.take(s, i, r.p.values))
		r.left--
	}
	return nil
}

// readFixed reads splats whose rows are of one size, taking rows apart on all cores.
func (r *splatRows) readFixed(s *scene.Splats, first int) error {
	e, size := r.p.Vertex(), len(r.p.row)
	for lo := 0; lo < s.N; lo += plyGroup * plyBatch {
		n := min(s.N-lo, plyGroup*plyBatch)
		if len(r.block) < n*size {
			r.block = make([]byte, n*size)
		}
		if have, err := io.ReadFull(r.p.r, r.block[:n*size]); err != nil {
			return shortFile(err, e, first+lo+have/size)
		}
		found := make([][2]int, (n+plyBatch-1)/plyBatch)
		parallel.For(len(found), func(batch int) {
			values := make([]float64, len(e.properties))
			for i := batch * plyBatch; i < min((batch+1)*plyBatch, n); i++ {
				e.decode(values, r.block[i*size:(i+1)*size], r.p.order)
				clamped, bad := r.cols.take(s, lo+i, values)
				found[batch][0] += clamped
				found[batch][1] += bad
			}
		})
		for _, f := range found {
			r.count(f[0], f[1])
		}
		r.left -= n
	}
	return nil
}

func (r *splatRows) count(clamped, bad int) {
	r.info.Clamped += clamped
	r.info.NonFinite += bad
}

// take copies a row into splat i of s: 1 where it was clamped, and where it is not finite, else 0.
func (c *columns) take(s *scene.Splats, i int, row []float64) (clamped, bad int) {
	if c.clampInfinite(row) {
		clamped = 1
	}
	if !c.store(s, i, row) {
		bad = 1
	}
	return clamped, bad
}

// columns maps what a splat needs to columns of the vertex element.
type columns struct {
	position, scale [3]int // scale[2] is -1 where splats are flat
	opacity         int
	quat            [4]int
	sh              []int // [3K] coefficient-major, as in Splats.SH
	degree          int
}

// InfiniteLog stands for infinity in the logit of an opacity and the logarithm of
// a scale: 1/(1+exp(-30)) is 1 in float32, exp(-30) is far below any pixel.
const InfiniteLog = 30

// flatScale is the third scale of splats that are trained as disks and whose files have two: what SuperSplat and
// splat-transform take, which makes them ellipsoids that are thinner than any pixel.
const flatScale = 1e-6

var flatLog = float32(math.Log(flatScale))

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
		if column >= 0 && math.IsInf(row[column], -1) {
			row[column] = -InfiniteLog
			clamped = true
		}
	}
	return clamped
}

// store copies a row into splat i and tells whether all of it is finite.
func (c *columns) store(s *scene.Splats, i int, row []float64) bool {
	finite := true
	get := func(column int) float32 {
		v := flatLog
		if column >= 0 {
			v = float32(row[column])
		}
		finite = finite && scene.Finite32(v)
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
func splatColumns(e *Element) (c columns, ignored []string, err error) {
	if e.Index("packed_position") >= 0 {
		return c, nil, &fault.Error{Err: errors.New("it is a compressed PLY (packed_position), which is not read here"),
			Hint: "convert it first: vksplat convert in.compressed.ply out.ply"}
	}
	if c.degree, err = degreeOf(e); err != nil {
		return c, nil, err
	}
	find := columnFinder{element: e, used: make([]bool, len(e.properties))}
	for axis, name := range []string{"x", "y", "z"} {
		c.position[axis] = find.column(name)
		if c.scale[axis] = -1; axis < 2 || e.Index("scale_2") >= 0 || len(find.missing) > 0 {
			c.scale[axis] = find.column("scale_" + strconv.Itoa(axis))
		}
	}
	c.opacity = find.column("opacity")
	for j := range c.quat {
		c.quat[j] = find.column("rot_" + strconv.Itoa(j))
	}
	k := scene.SHCoefficients(c.degree)
	c.sh = make([]int, 3*k)
	for channel := range 3 {
		c.sh[channel] = find.column("f_dc_" + strconv.Itoa(channel))
		for j := 1; j < k; j++ {
			c.sh[3*j+channel] = find.column("f_rest_" + strconv.Itoa(channel*(k-1)+j-1))
		}
	}
	if len(find.missing) > 0 {
		return c, nil, &fault.Error{Err: fmt.Errorf("element vertex lacks %s", strings.Join(find.missing, ", ")),
			Hint: "this is not a model of splats; point clouds and meshes have no f_dc, opacity, scale and rot"}
	}
	return c, find.unused(), nil
}

// degreeOf derives the SH degree from the number of f_rest properties.
func degreeOf(e *Element) (int, error) {
	n := 0
	for _, p := range e.properties {
		if strings.HasPrefix(p.name, "f_rest_") {
			n++
		}
	}
	for degree := range scene.MaxSHDegree + 1 {
		if n == 3*(scene.SHCoefficients(degree)-1) {
			return degree, nil
		}
	}
	return 0, &fault.Error{Err: fmt.Errorf("element vertex has %d f_rest properties", n),
		Hint: "SH degrees 0 to 3 have 0, 9, 24 or 45 of them; export the model at one of these degrees"}
}

// columnFinder looks up scalar columns by name, noting what is missing.
type columnFinder struct {
	element *Element
	used    []bool
	missing []string
}

func (f *columnFinder) column(name string) int {
	i := f.element.Index(name)
	if i < 0 || f.element.properties[i].list {
		f.missing = append(f.missing, name)
		return 0
	}
	f.used[i] = true
	return i
}

// unused lists the properties that were not requested, normals aside.
func (f *columnFinder) unused() []string {
	var out []string
	for i, p := range f.element.properties {
		if !f.used[i] && p.name != "nx" && p.name != "ny" && p.name != "nz" {
			out = append(out, p.name)
		}
	}
	return out
}
