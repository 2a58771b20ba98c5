package usd

import (
	"fmt"
	"io"
	"math"
)

// The binary form, version 0.8 (pxr/usd/sdf/crateFile.h): a head, the values that do not fit into eight bytes, then
// six sections of structure, each compressed, and a table of where these begin.
const (
	crateMagic = "PXR-USDC"
	crateHead  = 88
)

var crateVersion = [8]byte{0, 8, 0}

// Types of values and of specs, as numbered there.
const (
	crateInt         = 3
	crateFloat       = 8
	crateDouble      = 9
	crateString      = 10
	crateToken       = 11
	crateQuatf       = 17
	crateVec3f       = 24
	crateTokenVector = 41
	crateSpecifier   = 42
	crateVariability = 44
	crateBool        = 1

	crateArray   = 1 << 63
	crateInlined = 1 << 62

	specAttribute  = 1
	specPrim       = 6
	specPseudoRoot = 7

	uniform = 1
	define  = 0
)

var arrayTypes = map[Kind]uint64{Float: crateFloat, Float3: crateVec3f, Quat: crateQuatf}

// crate is a layer on its way into the binary form.
type crate struct {
	tokens    []string
	tokenOf   map[string]uint32
	strings   []uint32 // tokens
	fields    []crateField
	fieldSets []uint32 // fields, each set with an end
	specs     []crateSpec
	paths     cratePaths
	small     []byte // values but arrays, which come behind these
	arrays    int64  // bytes of arrays so far
	placed    []arrayRep
}

type crateField struct {
	token uint32
	rep   uint64
}

type crateSpec struct{ path, fieldSet, kind uint32 }

// arrayRep is a field whose value is an array: its place is known once all small values are.
type arrayRep struct {
	field int
	at    int64 // from the first array
}

// cratePaths are the paths as a tree, depth first. A token is negative where it names a property. A jump says where the
// next sibling is: -2 for a leaf without one, -1 if only children follow, 0 if only a sibling does.
type cratePaths struct{ index, token, jump []int32 }

const endOfSet = math.MaxUint32

func (c *crate) token(s string) uint32 {
	at, known := c.tokenOf[s]
	if !known {
		at = uint32(len(c.tokens))
		c.tokens, c.tokenOf[s] = append(c.tokens, s), at
	}
	return at
}

// inlined is a value in its own field.
func inlined(kind uint64, value uint32) uint64 { return crateInlined | kind<<48 | uint64(value) }

func (c *crate) text(s string) uint64 {
	c.strings = append(c.strings, c.token(s))
	return inlined(crateString, uint32(len(c.strings)-1))
}

func (c *crate) names(list []string) uint64 {
	at := crateHead + len(c.small)
	c.small = u64(c.small, uint64(len(list)))
	for _, s := range list {
		c.small = u32(c.small, c.token(s))
	}
	for len(c.small)%8 != 0 {
		c.small = append(c.small, 0)
	}
	return crateTokenVector<<48 | uint64(at)
}

// double is a number, in four bytes where these hold it.
func (c *crate) double(x float64) uint64 {
	if float64(float32(x)) == x {
		return inlined(crateDouble, math.Float32bits(float32(x)))
	}
	at := crateHead + len(c.small)
	c.small = u64(c.small, math.Float64bits(x))
	return crateDouble<<48 | uint64(at)
}

// set begins the fields of a spec: those added until its end.
func (c *crate) spec(path int32, kind uint32) {
	c.specs = append(c.specs, crateSpec{uint32(path), uint32(len(c.fieldSets)), kind})
}

func (c *crate) field(name string, rep uint64) {
	c.fieldSets = append(c.fieldSets, uint32(len(c.fields)))
	c.fields = append(c.fields, crateField{c.token(name), rep})
}

func (c *crate) endSpec() { c.fieldSets = append(c.fieldSets, endOfSet) }

func (c *crate) path(name string, property bool) (index int32) {
	index = int32(len(c.paths.index))
	token := int32(c.token(name))
	if property {
		token = -token
	}
	c.paths.index, c.paths.token, c.paths.jump = append(c.paths.index, index), append(c.paths.token, token),
		append(c.paths.jump, 0)
	return index
}

// close sets the jump of a path whose children have been added.
func (c *crate) close(path int32, sibling bool) {
	next := int32(len(c.paths.index))
	switch parent := next > path+1; {
	case parent && sibling:
		c.paths.jump[path] = next - path
	case parent:
		c.paths.jump[path] = -1
	case sibling:
		c.paths.jump[path] = 0
	default:
		c.paths.jump[path] = -2
	}
}

func (c *crate) layer(l *Layer) {
	c.token("") // a property cannot be token 0, which has no sign
	root := c.path("", false)
	c.spec(root, specPseudoRoot)
	c.field("defaultPrim", inlined(crateToken, c.token(l.Root.Name)))
	c.field("upAxis", inlined(crateToken, c.token("Y")))
	c.field("metersPerUnit", c.double(l.MetersPerUnit))
	if l.Doc != "" {
		c.field("documentation", c.text(l.Doc))
	}
	c.field("primChildren", c.names([]string{l.Root.Name}))
	c.endSpec()
	c.prim(&l.Root, false)
	c.close(root, false)
}

func (c *crate) prim(p *Prim, sibling bool) {
	path := c.path(p.Name, false)
	c.spec(path, specPrim)
	c.field("specifier", inlined(crateSpecifier, define))
	c.field("typeName", inlined(crateToken, c.token(p.Type)))
	var properties, children []string
	for _, a := range p.Attributes {
		properties = append(properties, a.Name)
	}
	for i := range p.Children {
		children = append(children, p.Children[i].Name)
	}
	if len(properties) > 0 {
		c.field("properties", c.names(properties))
	}
	if len(children) > 0 {
		c.field("primChildren", c.names(children))
	}
	c.endSpec()
	for i := range p.Attributes {
		at := c.path(p.Attributes[i].Name, true)
		c.attribute(at, &p.Attributes[i])
		c.close(at, i+1 < len(p.Attributes) || len(p.Children) > 0)
	}
	for i := range p.Children {
		c.prim(&p.Children[i], i+1 < len(p.Children))
	}
	c.close(path, sibling)
}

func (c *crate) attribute(path int32, a *Attribute) {
	c.spec(path, specAttribute)
	c.field("typeName", inlined(crateToken, c.token(a.Type)))
	if a.Custom {
		c.field("custom", inlined(crateBool, 1))
	}
	if a.Uniform {
		c.field("variability", inlined(crateVariability, uniform))
	}
	switch v := a.Value.(type) {
	case Token:
		c.field("default", inlined(crateToken, c.token(string(v))))
	case String:
		c.field("default", c.text(string(v)))
	case Int:
		c.field("default", inlined(crateInt, uint32(v)))
	case Array:
		c.placed = append(c.placed, arrayRep{len(c.fields), c.arrays})
		c.arrays += aligned(8 + v.size())
		c.field("default", crateArray|arrayTypes[v.Kind]<<48)
	}
	c.endSpec()
}

func aligned(n int64) int64 { return (n + 7) &^ 7 }

type section struct {
	name string
	body []byte
}

func (c *crate) sections() []section {
	var text []byte
	for _, s := range c.tokens {
		text = append(append(text, s...), 0)
	}
	packed := squeeze(text)
	tokens := u64(u64(u64(nil, uint64(len(c.tokens))), uint64(len(text))), uint64(len(packed)))
	texts := u64(nil, uint64(len(c.strings)))
	for _, s := range c.strings {
		texts = u32(texts, s)
	}
	var names, paths, sets, kinds []int32
	var reps []byte
	for _, f := range c.fields {
		names, reps = append(names, int32(f.token)), u64(reps, f.rep)
	}
	packedReps := squeeze(reps)
	fields := append(u64(ints(u64(nil, uint64(len(names))), names), uint64(len(packedReps))), packedReps...)
	var fieldSets []int32
	for _, f := range c.fieldSets {
		fieldSets = append(fieldSets, int32(f))
	}
	for _, s := range c.specs {
		paths, sets, kinds = append(paths, int32(s.path)), append(sets, int32(s.fieldSet)), append(kinds, int32(s.kind))
	}
	n := uint64(len(c.paths.index))
	return []section{
		{"TOKENS", append(tokens, packed...)},
		{"STRINGS", texts},
		{"FIELDS", fields},
		{"FIELDSETS", ints(u64(nil, uint64(len(fieldSets))), fieldSets)},
		{"PATHS", ints(ints(ints(u64(u64(nil, n), n), c.paths.index), c.paths.token), c.paths.jump)},
		{"SPECS", ints(ints(ints(u64(nil, uint64(len(paths))), paths), sets), kinds)},
	}
}

func WriteCrate(to io.Writer, l *Layer) error {
	head, arrays, tail := l.crate()
	w := &counted{to: to}
	if _, err := w.Write(head); err != nil {
		return err
	}
	err := l.Root.each(func(a Array) error {
		if _, err := w.Write(u64(nil, uint64(a.N))); err != nil {
			return err
		}
		if n, err := io.Copy(w, a.Data()); err != nil || n != a.size() {
			return fmt.Errorf("an array of %d bytes ended after %d: %w", a.size(), n, err)
		}
		_, err := w.Write(make([]byte, -w.n&7))
		return err
	})
	if err == nil && w.n != int64(len(head))+arrays {
		err = fmt.Errorf("the arrays end at byte %d instead of %d", w.n, int64(len(head))+arrays)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(tail)
	return err
}

// CrateSize gives how many bytes WriteCrate writes.
func CrateSize(l *Layer) int64 {
	head, arrays, tail := l.crate()
	return int64(len(head)) + arrays + int64(len(tail))
}

// crate gives what stands before and behind the arrays, and how many bytes these take.
func (l *Layer) crate() (head []byte, arrays int64, tail []byte) {
	c := &crate{tokenOf: map[string]uint32{}}
	c.layer(l)
	first := int64(crateHead + len(c.small))
	for _, a := range c.placed {
		c.fields[a.field].rep |= uint64(first + a.at)
	}
	at := first + c.arrays
	sections := c.sections()
	table := u64(nil, uint64(len(sections)))
	for _, s := range sections {
		var name [16]byte
		copy(name[:], s.name)
		table = u64(u64(append(table, name[:]...), uint64(at)), uint64(len(s.body)))
		tail = append(tail, s.body...)
		at += int64(len(s.body))
	}
	head = append([]byte(crateMagic), crateVersion[:]...)
	head = append(u64(head, uint64(at)), make([]byte, crateHead-24)...)
	return append(head, c.small...), c.arrays, append(tail, table...)
}

// ints appends whole numbers as the structure has them: differences, here all of four bytes, behind two bits each that
// say so (Usd_IntegerCompression), and then squeezed.
func ints(b []byte, list []int32) []byte {
	plain := u32(nil, 0) // the commonest difference, which no code names
	for range (2*len(list) + 7) / 8 {
		plain = append(plain, 0xff)
	}
	last := int32(0)
	for _, x := range list {
		plain, last = u32(plain, uint32(x-last)), x
	}
	packed := squeeze(plain)
	return append(u64(b, uint64(len(packed))), packed...)
}

// squeeze gives one block of LZ4 without a single match, behind the byte that says that there is one. The structure of
// a model takes some hundred bytes: nothing is won by looking for matches.
func squeeze(b []byte) []byte {
	out := []byte{0}
	if len(b) < 15 {
		return append(append(out, byte(len(b)<<4)), b...)
	}
	out = append(out, 15<<4)
	rest := len(b) - 15
	for ; rest >= 255; rest -= 255 {
		out = append(out, 255)
	}
	return append(append(out, byte(rest)), b...)
}
