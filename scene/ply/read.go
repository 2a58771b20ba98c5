package ply

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/textnum"
)

func openFile(path string) (*os.File, int64, error) {
	if atomicfile.IsDir(path) {
		return nil, 0, &fault.Error{Err: errors.New("it is a folder"),
			Hint: "name the .ply file in it, for example point_cloud/iteration_30000/point_cloud.ply"}
	}
	return fault.Open(path)
}

// ReadWith opens a file, passes it to read with its size and names it in errors.
func ReadWith(path string, read func(r io.Reader, size int64) error) error {
	f, size, err := openFile(path)
	if err != nil {
		return plyError(path, err)
	}
	defer f.Close()
	return plyError(path, read(f, size))
}

// plyError turns an error into one of kind fault.ErrData, nil into nil. An error that has a remedy keeps it.
func plyError(path string, err error) error {
	if err == nil {
		return nil
	}
	out := &fault.Error{Op: "read ply", Path: path, Err: fault.TrimPath(err), Hint: fault.OwnHint(err)}
	switch {
	case out.Hint != "":
	case errors.Is(err, os.ErrNotExist):
		out.Hint = "check the spelling of the path"
	case errors.Is(err, os.ErrPermission):
		out.Hint, out.Kind = "make the file readable for this user", fault.ErrTryAgain
	default:
		out.Hint = "the file may be cut short or not a PLY file: copy or export it again"
	}
	return out
}

// Reader reads the rows of the vertex element.
type Reader struct {
	r        *bufio.Reader
	header   *plyHeader
	order    binary.ByteOrder
	vertexID int
	row      []byte
	values   []float64
	note     string // of bytes after the last row, "" for none
}

// NewReader parses the header, checks it against the size of the file and
// skips to the first vertex.
func NewReader(r io.Reader, size int64) (*Reader, error) {
	p := &Reader{r: bufio.NewReaderSize(r, 1<<18), order: binary.LittleEndian}
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
	if p.note, err = p.header.surplus(p.vertexID, size); err != nil {
		return nil, err
	}
	for i := range p.vertexID {
		if err := p.skip(&p.header.elements[i]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Reader) Vertex() *Element { return &p.header.elements[p.vertexID] }

// skip reads over an element that stands before the vertices.
func (p *Reader) skip(e *Element) error {
	if p.header.fixed(e) {
		_, err := io.CopyN(io.Discard, p.r, e.count*e.rowBytes(p.header.format))
		return shortFile(err, e, 0)
	}
	if len(e.properties) == 0 {
		return nil
	}
	return p.each(e, func(int, []float64) {})
}

// rows calls f with every vertex in order. A list shows as its length.
func (p *Reader) rows(f func(i int, row []float64)) error { return p.each(p.Vertex(), f) }

func (p *Reader) each(e *Element, f func(i int, row []float64)) error {
	p.begin(e)
	for i := range int(e.count) {
		if err := p.next(e, i); err != nil {
			return err
		}
		f(i, p.values)
	}
	return nil
}

// fixed reports whether the rows of an element are all of rowBytes bytes.
func (h *plyHeader) fixed(e *Element) bool { return h.format != plyASCII && !e.hasList() }

func (p *Reader) begin(e *Element) {
	p.row = nil
	if p.header.fixed(e) {
		p.row = make([]byte, e.rowBytes(p.header.format))
	}
	p.values = make([]float64, len(e.properties))
}

// next reads row i, which comes next, into values.
func (p *Reader) next(e *Element, i int) error {
	if !p.header.fixed(e) {
		err := p.variableRow(e)
		if last := len(p.header.elements) - 1; err == nil && p.header.format == plyASCII && i == e.Rows()-1 &&
			e == &p.header.elements[last] {
			err = p.endText(e)
		}
		return shortFile(err, e, i)
	}
	if _, err := io.ReadFull(p.r, p.row); err != nil {
		return shortFile(err, e, i)
	}
	e.decode(p.values, p.row, p.order)
	return nil
}

func shortFile(err error, e *Element, i int) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends in element %s, row %d of %d", e.name, i, e.count)
	}
	if err != nil {
		return fmt.Errorf("element %s, row %d: %w", e.name, i, err)
	}
	return nil
}

// decode takes a binary row without lists apart.
func (e *Element) decode(values []float64, row []byte, order binary.ByteOrder) {
	for i := range e.properties {
		kind := e.properties[i].kind
		values[i] = kind.value(row, order)
		row = row[kind.size():]
	}
}

// variableRow reads one row value by value: ascii, or binary with lists.
func (p *Reader) variableRow(e *Element) error {
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
		if !(v >= 0 && v < 1<<62 && v == math.Trunc(v)) {
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

// endText judges the values of ascii that follow the last row. Those that make no rows do not matter.
func (p *Reader) endText(e *Element) (err error) {
	more := int64(0)
	for ; err == nil; more++ {
		_, err = p.asciiScalar()
	}
	_, err = Surplus("value", more-1, e.count, int64(len(e.properties)))
	return err
}

// scalar reads one value in the encoding of the file.
func (p *Reader) scalar(kind plyKind) (float64, error) {
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
func (p *Reader) asciiScalar() (float64, error) {
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
	v, ok := textnum.Float(string(token[:n]))
	if !ok {
		return 0, fmt.Errorf("%q is not a number", token[:n])
	}
	return v, nil
}
