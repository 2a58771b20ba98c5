// Package usd writes layers of OpenUSD: binary ("crate", .usdc), as text (.usda), and packed (.usdz). It knows what
// models of splats need: prims with attributes, whose large arrays are streamed.
//
// A Layer describes a file; WriteCrate, WriteText and WritePackage write it. Same layer, same bytes.
package usd

import (
	"encoding/binary"
	"io"
)

// Layer is a file: one prim with everything below it, which is its default prim. Y is up, and a unit is a metre long
// where nothing says otherwise.
type Layer struct {
	Doc           string // what it is, "" for nothing
	MetersPerUnit float64
	Root          Prim
}

type Prim struct {
	Name       string // an identifier
	Type       string // its schema, as in Xform
	Attributes []Attribute
	Children   []Prim
}

type Attribute struct {
	Name    string
	Type    string // as the text form writes it, as in point3f[]
	Uniform bool   // it cannot change over time
	Custom  bool   // no schema knows it
	Value   Value
}

// Value is a Token, a String, an Int or an Array.
type Value interface{ isValue() }

// Token is a word from a list that a schema knows.
type Token string

type String string

type Int int32

// Array is a list of vectors of float32, little-endian, as Data reads them. Data is called once for each time that the
// layer is written.
type Array struct {
	N    int64 // vectors
	Kind Kind
	Data func() io.Reader
}

func (Token) isValue()  {}
func (String) isValue() {}
func (Int) isValue()    {}
func (Array) isValue()  {}

type Kind int

// Kinds of arrays. Quaternions have their real part last in Data, as in memory; text has it first.
const (
	Float Kind = iota
	Float3
	Quat
)

// width is how many numbers a vector has.
func (k Kind) width() int { return [...]int{1, 3, 4}[k] }

// size is how many bytes the array takes.
func (a Array) size() int64 { return 4 * int64(a.Kind.width()) * a.N }

// each calls do for every array below a prim, in the order in which they are written.
func (p *Prim) each(do func(a Array) error) error {
	for _, attribute := range p.Attributes {
		if a, ok := attribute.Value.(Array); ok {
			if err := do(a); err != nil {
				return err
			}
		}
	}
	for i := range p.Children {
		if err := p.Children[i].each(do); err != nil {
			return err
		}
	}
	return nil
}

// counted is a writer that knows how far it is.
type counted struct {
	to io.Writer
	n  int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

func u32(b []byte, x uint32) []byte { return binary.LittleEndian.AppendUint32(b, x) }
func u64(b []byte, x uint64) []byte { return binary.LittleEndian.AppendUint64(b, x) }
