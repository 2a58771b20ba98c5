package ply

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/filekind"
)

// plyFormat is the encoding of the values after the header.
type plyFormat int

const (
	plyASCII plyFormat = iota
	plyLittle
	plyBig
)

var plyFormats = map[string]plyFormat{
	"ascii":                plyASCII,
	"binary_little_endian": plyLittle,
	"binary_big_endian":    plyBig,
}

type plyKind int

const (
	plyInt8 plyKind = iota
	plyUint8
	plyInt16
	plyUint16
	plyInt32
	plyUint32
	plyFloat32
	plyFloat64
)

var plyKinds = map[string]plyKind{
	"char": plyInt8, "int8": plyInt8, "uchar": plyUint8, "uint8": plyUint8,
	"short": plyInt16, "int16": plyInt16, "ushort": plyUint16, "uint16": plyUint16,
	"int": plyInt32, "int32": plyInt32, "uint": plyUint32, "uint32": plyUint32,
	"float": plyFloat32, "float32": plyFloat32, "double": plyFloat64, "float64": plyFloat64,
}

// size returns the bytes of a scalar in the binary formats.
func (k plyKind) size() int { return [...]int{1, 1, 2, 2, 4, 4, 4, 8}[k] }

// value decodes a scalar from the start of b, which holds size() bytes.
func (k plyKind) value(b []byte, order binary.ByteOrder) float64 {
	switch k {
	case plyInt8:
		return float64(int8(b[0]))
	case plyUint8:
		return float64(b[0])
	case plyInt16:
		return float64(int16(order.Uint16(b)))
	case plyUint16:
		return float64(order.Uint16(b))
	case plyInt32:
		return float64(int32(order.Uint32(b)))
	case plyUint32:
		return float64(order.Uint32(b))
	case plyFloat32:
		return float64(math.Float32frombits(order.Uint32(b)))
	default:
		return math.Float64frombits(order.Uint64(b))
	}
}

// plyProperty is one column of an element; a list has its length before it.
type plyProperty struct {
	name   string
	kind   plyKind
	list   bool
	length plyKind // of the count of a list
}

// Element is one table of the file.
type Element struct {
	name       string
	count      int64
	properties []plyProperty
}

func (e *Element) Rows() int { return int(e.count) }

// hasList tells whether rows differ in size.
func (e *Element) hasList() bool {
	return slices.ContainsFunc(e.properties, func(p plyProperty) bool { return p.list })
}

// rowBytes returns the least number of bytes of a row: exact in a binary file
// without lists. ASCII values take a digit and a separator at least.
func (e *Element) rowBytes(format plyFormat) int64 {
	var n int64
	for _, p := range e.properties {
		switch {
		case format == plyASCII:
			n += 2
		case p.list:
			n += int64(p.length.size())
		default:
			n += int64(p.kind.size())
		}
	}
	return n
}

// Index returns the column of a property, or -1.
func (e *Element) Index(name string) int {
	return slices.IndexFunc(e.properties, func(p plyProperty) bool { return p.name == name })
}

type plyHeader struct {
	format   plyFormat
	name     string // of the format
	comments []string
	elements []Element
	bytes    int64 // length of the header in the file
	lines    int   // of it

	properties int // of all elements
}

// Headers of real files have a few kilobytes and up to some hundred properties; these
// bounds keep a file that is not PLY at all from being read as one endless line, and
// names from being compared by the million.
const (
	plyMaxLine       = 4096
	plyMaxHeader     = 1 << 20
	plyMaxLines      = 1 << 14
	plyMaxElements   = 1 << 8
	plyMaxProperties = 1 << 12 // of all elements together
)

// ErrNotPLY says that a file is of another kind.
var ErrNotPLY = errors.New("the first line is not \"ply\"")

// readPLYHeader parses everything up to and including end_header.
func readPLYHeader(r *bufio.Reader) (*plyHeader, error) {
	h := &plyHeader{}
	head, _ := r.Peek(512) // as much as there is
	if line, err := h.line(r); err != nil || line != "ply" {
		if kind, hint := filekind.Of("", head); kind != "" {
			return nil, &fault.Error{Err: fmt.Errorf("%w: it is %s", ErrNotPLY, kind), Hint: hint}
		}
		return nil, ErrNotPLY
	}
	for {
		line, err := h.line(r)
		if err != nil {
			return nil, err
		}
		if line == "end_header" {
			break
		}
		if err := h.parse(line); err != nil {
			return nil, err
		}
	}
	if h.name == "" {
		return nil, fmt.Errorf("the header has no format line")
	}
	return h, nil
}

// line reads a line of at most plyMaxLine bytes without its end.
func (h *plyHeader) line(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		c, err := r.ReadByte()
		if err == io.EOF {
			return "", fmt.Errorf("the header ends before end_header")
		}
		if err != nil {
			return "", err
		}
		h.bytes++
		if c == '\n' {
			if h.lines++; h.lines > plyMaxLines {
				return "", fmt.Errorf("the header has more than %d lines", plyMaxLines)
			}
			return strings.TrimRight(string(line), " \t\r"), nil
		}
		line = append(line, c)
		if len(line) > plyMaxLine || h.bytes > plyMaxHeader {
			return "", fmt.Errorf("the header has a line above %d or more than %d bytes in all", plyMaxLine,
				plyMaxHeader)
		}
	}
}

func (h *plyHeader) parse(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	fields := strings.Fields(rest)
	switch word {
	case "comment", "obj_info":
		h.comments = append(h.comments, rest)
		return nil
	case "":
		return nil
	case "format":
		return h.parseFormat(fields)
	case "element":
		return h.parseElement(fields)
	case "property":
		return h.parseProperty(fields)
	}
	return fmt.Errorf("header line %q starts with an unknown keyword", line)
}

func (h *plyHeader) parseFormat(fields []string) error {
	if len(fields) != 2 || fields[1] != "1.0" || h.name != "" {
		return fmt.Errorf("header line \"format %s\" is not a single known format of version 1.0",
			strings.Join(fields, " "))
	}
	format, ok := plyFormats[fields[0]]
	if !ok {
		return fmt.Errorf("format %q is not known", fields[0])
	}
	h.format, h.name = format, fields[0]
	return nil
}

func (h *plyHeader) parseElement(fields []string) error {
	if len(fields) != 2 {
		return fmt.Errorf("header line \"element %s\" is not a name and a count", strings.Join(fields, " "))
	}
	count, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil || count < 0 {
		return fmt.Errorf("element %s has the count %q", fields[0], fields[1])
	}
	for _, e := range h.elements {
		if e.name == fields[0] {
			return fmt.Errorf("element %s appears twice", e.name)
		}
	}
	if len(h.elements) == plyMaxElements {
		return fmt.Errorf("the header has more than %d elements", plyMaxElements)
	}
	h.elements = append(h.elements, Element{name: fields[0], count: count})
	return nil
}

func (h *plyHeader) parseProperty(fields []string) error {
	text := strings.Join(fields, " ")
	if len(h.elements) == 0 {
		return fmt.Errorf("property %q comes before any element", text)
	}
	e := &h.elements[len(h.elements)-1]
	var p plyProperty
	var ok bool
	switch {
	case len(fields) == 4 && fields[0] == "list":
		p.list = true
		p.length, ok = plyKinds[fields[1]]
		if !ok || p.length >= plyFloat32 {
			return fmt.Errorf("property %q: type %q cannot count a list", text, fields[1])
		}
		fields = fields[2:]
	case len(fields) != 2:
		return fmt.Errorf("property %q is not a type and a name", text)
	}
	if p.kind, ok = plyKinds[fields[0]]; !ok {
		return fmt.Errorf("property %q: type %q is not known", text, fields[0])
	}
	p.name = fields[1]
	if e.Index(p.name) >= 0 {
		return fmt.Errorf("element %s: property %s appears twice", e.name, p.name)
	}
	if h.properties++; h.properties > plyMaxProperties {
		return fmt.Errorf("the header has more than %d properties", plyMaxProperties)
	}
	e.properties = append(e.properties, p)
	return nil
}

// vertex finds the element "vertex", after checking that it and all elements
// before it can fit what the file holds after the header. Nothing the header
// claims is trusted before this check.
func (h *plyHeader) vertex(fileSize int64) (int, error) {
	left := fileSize - h.bytes
	if h.format == plyASCII {
		left++ // the last value needs no separator
	}
	for i := range h.elements {
		e := &h.elements[i]
		if row := e.rowBytes(h.format); row > 0 {
			if e.count > left/row {
				return 0, fmt.Errorf("the header claims %d of element %s, %d bytes or more each, and %d bytes are "+
					"left in the file",
					e.count, e.name, row, max(left, 0))
			}
			left -= e.count * row
		}
		if e.name == "vertex" {
			return i, nil
		}
	}
	return 0, fmt.Errorf("the header has no element vertex")
}
