package ply

import (
	"bufio"
	"fmt"
	"io"
)

// Table is an element of a PLY file whose rows are equally long: it can be read from any row on.
type Table struct {
	Name     string
	Rows     int64
	Offset   int64 // of the first row in the file
	RowBytes int64
	columns  []plyProperty
}

// ReadTables reads the header of a little-endian binary PLY file without lists, of size bytes: its elements in order,
// all of which fit the file, and what its comments say.
func ReadTables(r io.Reader, size int64) ([]Table, Meta, error) {
	h, err := readPLYHeader(bufio.NewReader(r))
	if err != nil {
		return nil, Meta{}, err
	}
	if h.format != plyLittle {
		return nil, Meta{}, fmt.Errorf("format %s is not read here, binary_little_endian is", h.name)
	}
	tables := make([]Table, len(h.elements))
	at := h.bytes
	for i := range h.elements {
		e := &h.elements[i]
		row := e.rowBytes(plyLittle)
		if e.hasList() || row == 0 {
			return nil, Meta{}, fmt.Errorf("element %s has lists or no properties", e.name)
		}
		if e.count > (size-at)/row {
			return nil, Meta{},
				fmt.Errorf("the header claims %d of element %s, %d bytes each, and %d bytes are left in the file",
					e.count, e.name, row, max(size-at, 0))
		}
		tables[i] = Table{e.name, e.count, at, row, e.properties}
		at += e.count * row
	}
	return tables, parseMeta(h.comments), nil
}

// Column returns where in a row the property of a type ("float", "uchar") and a name begins; -1: there is none.
func (t *Table) Column(kind, name string) int {
	at := 0
	for _, p := range t.columns {
		if p.name == name && p.kind == plyKinds[kind] {
			return at
		}
		at += p.kind.size()
	}
	return -1
}

func (t *Table) Columns() []string {
	names := make([]string, len(t.columns))
	for i, p := range t.columns {
		names[i] = p.name
	}
	return names
}
