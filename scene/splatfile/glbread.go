package splatfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// glbSource reads the splats of a file's attributes.
type glbSource struct {
	indexed
	path    string
	r       io.ReaderAt
	closer  io.Closer
	place   *mover // from glTF's axes, where the nodes put the splats
	columns struct{ mean, quat, scale, opacity glbColumn }
	sh      []glbColumn // by coefficient
	packed  []byte      // rows of a column
	values  []float32   // their numbers
}

type glbColumn struct {
	name       string
	at, stride int64 // of the first row in the file, and from row to row
	width      int   // numbers a row
	kind       int   // glTF's component type
	normalized bool
}

func openGLB(path string) (Source, error) {
	return openWith(opReadGLB, path, newGLBSource)
}

func newGLBSource(path string, r io.ReaderAt, size int64, closer io.Closer) (Source, error) {
	f, err := readGLB(r, size)
	if err != nil {
		return nil, readError(opReadGLB, path, err, "")
	}
	mesh, primitive, err := f.splats()
	if err != nil {
		return nil, readError(opReadGLB, path, err, "")
	}
	place, err := f.place(mesh)
	if err != nil {
		return nil, readError(opReadGLB, path, err, "")
	}
	info := Info{Format: glbName, Meta: ply.Meta{Generator: f.root.Asset.Generator},
		Notes: primitive.Extensions.Splats.notes()}
	f.root.Asset.Extras.into(&info.Meta)
	if place != Unmoved() {
		info.Meta.Origin = nil
	}
	if packed := primitive.Extensions.Splats.Extensions; packed != nil && packed.SPZ != nil {
		return f.openSPZ(path, packed.SPZ.BufferView, closer, info, place)
	}
	s := &glbSource{path: path, r: r, closer: closer, place: newMover(place)}
	s.indexed = indexed{info, func(first int, piece *scene.Splats) error {
		return readError(opReadGLB, path, s.unpack(first, piece), "")
	}}
	if err := s.findColumns(f, primitive); err != nil {
		return nil, readError(opReadGLB, path, err, "")
	}
	return s, nil
}

// notes says what of the extension's properties a model has no place for.
func (e *gltfSplats) notes() []string {
	var notes []string
	if e.Kernel != "" && e.Kernel != glbKernel {
		notes = append(notes, fmt.Sprintf("the kernel is %s; the splats are taken as ellipsoids",
			wording.Printable(e.Kernel)))
	}
	if e.ColorSpace != "" && e.ColorSpace != glbColorSpace {
		notes = append(notes, fmt.Sprintf("the colour space is %s; colours are taken as they are",
			wording.Printable(e.ColorSpace)))
	}
	return notes
}

// glbKnown are the extensions that a file may require: with another one its bytes may mean something else.
var glbKnown = []string{glbSplats, glbSplatsSPZ, "KHR_mesh_quantization", "KHR_materials_unlit"}

func (f *glbFile) splats() (mesh int, found *gltfPrimitive, err error) {
	for _, name := range f.root.ExtensionsRequired {
		if !slices.Contains(glbKnown, name) {
			return 0, nil, &fault.Error{Op: opReadGLB,
				Err:  fmt.Errorf("it requires the extension %s, which is not read", wording.Printable(name)),
				Hint: "export it without"}
		}
	}
	for m := range f.root.Meshes {
		for p := range f.root.Meshes[m].Primitives {
			primitive := &f.root.Meshes[m].Primitives[p]
			if primitive.Extensions.Splats == nil {
				continue
			}
			if found != nil {
				return 0, nil,
					&fault.Error{Op: opReadGLB, Err: errors.New("it holds more than one model of splats"),
						Hint: "export each to a file of its own"}
			}
			mesh, found = m, primitive
		}
	}
	if found == nil {
		return 0, nil, &fault.Error{Op: opReadGLB, Err: fmt.Errorf("no mesh has the extension %s", glbSplats),
			Hint: "it is a mesh or a point cloud, not a model of splats"}
	}
	return mesh, found, nil
}

// openSPZ reads a model that is packed in a buffer view. Its axes are SPZ's own, which the draft of the extension has
// readers turn to glTF's, unless the file says otherwise.
func (f *glbFile) openSPZ(path string, view int, closer io.Closer, info Info, place Similarity) (Source, error) {
	at, v, err := f.view(view)
	if err != nil {
		return nil, readError(opReadGLB, path, err, "")
	}
	if place != Unmoved() {
		return nil, &fault.Error{Op: opReadGLB, Path: path,
			Err: errors.New("a node moves or turns splats that are packed as SPZ"), Hint: "export it without"}
	}
	s, err := newSPZSource(path, io.NewSectionReader(f.r, at, v.ByteLength), v.ByteLength, closer)
	if err != nil {
		return nil, err
	}
	info.N, info.Degree, info.Packed, info.Meta.Antialiased = s.info.N, s.info.Degree, true,
		info.Meta.Antialiased || s.info.Meta.Antialiased
	info.Notes, _ = surplusNotes(append(info.Notes, s.info.Notes...), f.surplus, 0, 0) // which are no rows
	s.info = info
	if e := f.root.Asset.Extras; e != nil && e.Own != nil && e.Own.SPZAxes == spzAxesOfGLTF {
		s.axes = spzAxes{sign: glbFrame}
	}
	return s, nil
}

// findColumns finds the attributes, and by them the number of splats and the degree.
func (s *glbSource) findColumns(f *glbFile, p *gltfPrimitive) error {
	n := int64(-1)
	column := func(name string, width int) (glbColumn, error) {
		id, ok := p.Attributes[name]
		if !ok {
			return glbColumn{}, &fault.Error{Op: opReadGLB, Err: fmt.Errorf("there is no attribute %s", name),
				Hint: "it may follow a draft of the extension: export it again with a newer program"}
		}
		c, count, err := f.column(id, name, width)
		if err == nil && n >= 0 && count != n {
			err = fmt.Errorf("attribute %s has %d rows, %s has %d", name, count, glbPosition, n)
		}
		n = count
		return c, err
	}
	for _, want := range []struct {
		name  string
		width int
		to    *glbColumn
	}{
		{glbPosition, 3, &s.columns.mean}, {glbRotation, 4, &s.columns.quat}, {glbScale, 3, &s.columns.scale},
		{glbOpacity, 1, &s.columns.opacity},
	} {
		var err error
		if *want.to, err = column(want.name, want.width); err != nil {
			return err
		}
	}
	degree := 0
	for k := range scene.SHCoefficients(scene.MaxSHDegree) {
		if _, ok := p.Attributes[glbSH(k)]; ok && k > 0 {
			degree = int(math.Sqrt(float64(k)))
		}
	}
	for k := range scene.SHCoefficients(degree) {
		c, err := column(glbSH(k), 3)
		if err != nil {
			return err
		}
		s.sh = append(s.sh, c)
	}
	if n > math.MaxInt32 {
		return fmt.Errorf("%d splats are more than can be read", n)
	}
	s.info.N, s.info.Degree = int(n), degree
	row := int64(0)
	for _, c := range append([]glbColumn{s.columns.mean, s.columns.quat, s.columns.scale, s.columns.opacity}, s.sh...) {
		row += int64(componentBytes(c.kind) * c.width)
	}
	var err error
	s.info.Notes, err = surplusNotes(s.info.Notes, f.surplus, n, row)
	return err
}

var glbTypes = map[string]int{"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}

// componentBytes is the size of a component of a type, 0 for types that splats do not have.
func componentBytes(kind int) int {
	switch kind {
	case 5120, 5121: // byte, unsigned byte
		return 1
	case 5122, 5123: // short, unsigned short
		return 2
	case glbFloat:
		return 4
	}
	return 0
}

// column finds an accessor and checks that all its rows are in the file.
func (f *glbFile) column(id int, name string, width int) (c glbColumn, rows int64, err error) {
	refuse := func(format string, args ...any) (glbColumn, int64, error) {
		return c, 0, fmt.Errorf("attribute %s: %w", name, fmt.Errorf(format, args...))
	}
	if id < 0 || id >= len(f.root.Accessors) {
		return refuse("there is no accessor %d", id)
	}
	a := f.root.Accessors[id]
	size := int64(componentBytes(a.ComponentType) * width)
	switch {
	case glbTypes[a.Type] != width || size == 0:
		return refuse("it is %s of component type %d", wording.Printable(a.Type), a.ComponentType)
	case len(a.Sparse) > 0 || a.BufferView == nil:
		return refuse("sparse accessors are not read")
	}
	at, v, err := f.view(*a.BufferView)
	if err != nil {
		return refuse("%w", err)
	}
	stride := size
	if v.ByteStride != 0 {
		stride = v.ByteStride
	}
	room := v.ByteLength - a.ByteOffset
	switch {
	case stride < size || stride > 252:
		return refuse("rows of %d bytes follow each other after %d", size, stride)
	case a.ByteOffset < 0 || a.Count < 0 || a.Count > 0 && (room < size || (room-size)/stride < a.Count-1):
		return refuse("it claims %d rows in %d bytes", a.Count, max(room, 0))
	}
	return glbColumn{name, at + a.ByteOffset, stride, width, a.ComponentType, a.Normalized}, a.Count, nil
}

func (s *glbSource) Close() error { return s.closer.Close() }

// unpack reads splats from first on. Numbers that are not finite are handed on as they are, but for infinite logarithms
// and logits, which have a meaning.
func (s *glbSource) unpack(first int, piece *scene.Splats) error {
	type part struct {
		column glbColumn
		put    func(i int, v []float32) error
	}
	parts := []part{
		{s.columns.mean, func(i int, v []float32) error { copy(piece.Means[3*i:], v); return nil }},
		{s.columns.quat, func(i int, v []float32) error {
			copy(piece.Quats[4*i:], []float32{v[3], v[0], v[1], v[2]})
			return nil
		}},
		{s.columns.scale, func(i int, v []float32) error {
			for axis, x := range v {
				if x < 0 {
					return fmt.Errorf("splat %d: a scale is %g: lengths are expected, drafts of the extension had "+
						"logarithms", first+i, x)
				}
				piece.LogScales[3*i+axis] = lengthLog(float64(x))
			}
			return nil
		}},
		{s.columns.opacity, func(i int, v []float32) error {
			if v[0] < 0 || v[0] > 1 {
				return fmt.Errorf("splat %d: the opacity is %g", first+i, v[0])
			}
			piece.LogitOpacities[i] = logit(float64(v[0]))
			return nil
		}},
	}
	for k, c := range s.sh {
		parts = append(parts, part{c, func(i int, v []float32) error {
			copy(piece.SH[3*(len(s.sh)*i+k):], v)
			return nil
		}})
	}
	for _, part := range parts {
		if err := s.rows(part.column, first, piece.N, part.put); err != nil {
			return err
		}
	}
	if s.place.Similarity != Unmoved() {
		s.place.apply(piece)
	}
	flip(piece, glbFrame[0], glbFrame[1], glbFrame[2])
	return nil
}

func (s *glbSource) rows(c glbColumn, first, n int, put func(i int, v []float32) error) error {
	size := componentBytes(c.kind)
	need := int(c.stride)*(n-1) + size*c.width
	packed, err := readRows(s.r, c.at+int64(first)*c.stride, need, 0, 1, &s.packed)
	if err != nil {
		return fmt.Errorf("attribute %s: %w", c.name, withoutPath(err))
	}
	if s.values == nil {
		s.values = make([]float32, 4)
	}
	v := s.values[:c.width]
	for i := range n {
		row := packed[i*int(c.stride):]
		for j := range v {
			v[j] = c.number(row[j*size:])
		}
		if err := put(i, v); err != nil {
			return err
		}
	}
	return nil
}

// number reads a component; integers that are normalised stand for -1 to 1, or 0 to 1 without a sign.
func (c glbColumn) number(b []byte) float32 {
	var x, most float32
	switch c.kind {
	case 5120:
		x, most = float32(int8(b[0])), math.MaxInt8
	case 5121:
		x, most = float32(b[0]), math.MaxUint8
	case 5122:
		x, most = float32(int16(binary.LittleEndian.Uint16(b))), math.MaxInt16
	case 5123:
		x, most = float32(binary.LittleEndian.Uint16(b)), math.MaxUint16
	default:
		return floatAt(b, 0)
	}
	if c.normalized {
		return max(x/most, -1)
	}
	return x
}
