package main

import (
	"fmt"
	"slices"
	"strings"
)

// typeRef is the Go rendering of a GLSL type: nested array lengths around a scalar or a struct.
type typeRef struct {
	dims   []uint32
	scalar string      // "uint32", "int32", "float32", or "" for a struct
	struc  *structType // when scalar is ""
	size   uint32      // bytes
}

// in renders the type as seen from a package in which the layout package has the given prefix.
func (t typeRef) in(prefix string) string {
	var b strings.Builder
	for _, d := range t.dims {
		fmt.Fprintf(&b, "[%d]", d)
	}
	if t.scalar != "" {
		return b.String() + t.scalar
	}
	return b.String() + prefix + t.struc.goName
}

// structType is a GLSL struct or interface block.
type structType struct {
	name, goName string // name is GLSL's
	fields       []field
	size         uint32
	doc          sourceDoc
}

type field struct {
	name, goName string
	typ          typeRef
	offset       uint32
}

// same reports whether two declarations give the same bytes the same names.
func (s *structType) same(o *structType) bool {
	return s.size == o.size && slices.EqualFunc(s.fields, o.fields, func(a, b field) bool {
		return a.name == b.name && a.offset == b.offset && a.typ.in("") == b.typ.in("")
	})
}

type binding struct {
	number       uint32
	name, goName string
	read, write  bool
	elem         typeRef
	doc          string
}

func (b binding) access() string {
	switch {
	case b.read && b.write:
		return "ReadWrite"
	case b.write:
		return "Write"
	}
	return "Read"
}

type spec struct {
	id           uint32
	name, goName string
	typ          string // "bool", "uint32", "int32", "float32"
	def          uint32 // bits of the default
}

// kernel is the whole interface of one .comp file.
type kernel struct {
	name, goName string
	file         string // for messages, relative to the repository root
	local        [3]uint32
	localSpec    int // specialization id of local_size_x, -1 if it is fixed
	bindings     []binding
	push         *structType
	specs        []spec
	structs      []*structType // every struct a binding or the push block refers to, innermost first
	doc          []string
	spv          []byte
	variant      string    // which one it is, "" for the kernel itself
	variants     []*kernel // of the kernel itself
	notes        []string
}

// camel turns a GLSL name into an exported Go name: n_splats -> NSplats, TILE_SIZE -> TileSize.
func camel(s string) string {
	if strings.ToUpper(s) == s {
		s = strings.ToLower(s)
	}
	var b strings.Builder
	for _, part := range strings.Split(s, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}
