package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Opcodes of the SPIR-V instructions that carry interface information
// (SPIR-V specification, section 3.49 "Instructions").
const (
	opName              = 5
	opMemberName        = 6
	opExecutionMode     = 16
	opCapability        = 17
	opTypeBool          = 20
	opTypeInt           = 21
	opTypeFloat         = 22
	opTypeVector        = 23
	opTypeMatrix        = 24
	opTypeArray         = 28
	opTypeRuntimeArray  = 29
	opTypeStruct        = 30
	opTypePointer       = 32
	opConstantTrue      = 41
	opConstantFalse     = 42
	opConstant          = 43
	opConstantComposite = 44
	opSpecConstantTrue  = 48
	opSpecConstantFalse = 49
	opSpecConstant      = 50
	opSpecComposite     = 51
	opSpecConstantOp    = 52
	opVariable          = 59
	opLoad              = 61
	opStore             = 62
	opAccessChain       = 65
	opInBoundsChain     = 66
	opArrayLength       = 68
	opDecorate          = 71
	opMemberDecorate    = 72
	opAtomicLoad        = 227
	opAtomicStore       = 228
	opAtomicExchange    = 229
	opAtomicXor         = 242
	opExecutionModeID   = 331
)

// Decorations, storage classes and execution modes in use.
const (
	decSpecID        = 1
	decArrayStride   = 6
	decBuiltIn       = 11
	decNonWritable   = 24
	decNonReadable   = 25
	decBinding       = 33
	decDescriptorSet = 34
	decOffset        = 35

	builtInWorkgroupSize = 25

	classInput           = 1
	classUniform         = 2
	classWorkgroup       = 4
	classUniformConstant = 0
	classPushConstant    = 9
	classStorageBuffer   = 12

	modeLocalSize   = 17
	modeLocalSizeID = 38
)

// minOperands is the number of words, after the opcode word, that the parser reads.
var minOperands = map[uint32]int{
	opName: 2, opMemberName: 3, opExecutionMode: 2, opExecutionModeID: 2, opCapability: 1,
	opTypeBool: 1, opTypeInt: 3, opTypeFloat: 2, opTypeVector: 3, opTypeMatrix: 3, opTypeArray: 3,
	opTypeRuntimeArray: 2, opTypeStruct: 1, opTypePointer: 3,
	opConstantTrue: 2, opConstantFalse: 2, opConstant: 3, opConstantComposite: 2,
	opSpecConstantTrue: 2, opSpecConstantFalse: 2, opSpecConstant: 3, opSpecComposite: 2, opSpecConstantOp: 3,
	opVariable: 3, opLoad: 3, opStore: 2, opAccessChain: 3, opInBoundsChain: 3, opArrayLength: 4,
	opDecorate: 2, opMemberDecorate: 3, opAtomicLoad: 3, opAtomicStore: 4,
}

// spirvType is one OpType instruction: args are the words after the result id.
type spirvType struct {
	op   uint32
	args []uint32
}

// constant is a constant or specialization constant; args are the words after the result id.
type constant struct {
	op, typ uint32
	args    []uint32
	seq     int // position among the constants
}

// variable is one module-scope or function-scope OpVariable.
type variable struct{ id, typ, class uint32 }

// member addresses member i of a struct type; i is -1 for a decoration of the id itself.
type member struct {
	id uint32
	i  int
}

// module is the part of a SPIR-V module that describes its interface.
type module struct {
	names        map[uint32]string
	memberNames  map[member]string
	types        map[uint32]spirvType
	constants    map[uint32]constant
	constantIDs  []uint32 // in module order
	decorations  map[member]map[uint32]uint32
	vars         []variable
	capabilities []uint32
	local        [3]uint32
	localIDs     []uint32 // ids of LocalSizeId, when that mode is used
	root         map[uint32]uint32
	read         map[uint32]bool // variables some instruction reads
	written      map[uint32]bool // variables some instruction writes
}

// parseModule reads the instructions of a little-endian SPIR-V module.
func parseModule(raw []byte) (*module, error) {
	if len(raw) < 20 || len(raw)%4 != 0 || binary.LittleEndian.Uint32(raw) != 0x07230203 {
		return nil, fmt.Errorf("not a little-endian SPIR-V module (%d bytes)", len(raw))
	}
	words := make([]uint32, len(raw)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	m := &module{
		names: map[uint32]string{}, memberNames: map[member]string{}, types: map[uint32]spirvType{},
		constants: map[uint32]constant{}, decorations: map[member]map[uint32]uint32{},
		root: map[uint32]uint32{}, read: map[uint32]bool{}, written: map[uint32]bool{},
	}
	for at := 5; at < len(words); {
		n, op := int(words[at]>>16), words[at]&0xffff
		if n == 0 || at+n > len(words) || n-1 < minOperands[op] {
			return nil, fmt.Errorf("malformed SPIR-V: instruction %d of %d words at word %d", op, n, at)
		}
		args := words[at+1 : at+n]
		if !m.declaredBefore(op, args) {
			return nil, fmt.Errorf("malformed SPIR-V: instruction %d at word %d uses an id before its declaration or "+
				"declares it twice", op, at)
		}
		m.declare(op, args)
		m.trackAccess(op, args)
		at += n
	}
	return m, nil
}

// declaredBefore checks that what a type or constant is made of comes earlier, as SPIR-V demands: no walk over them can
// loop.
func (m *module) declaredBefore(op uint32, a []uint32) bool {
	isType := func(ids ...uint32) bool {
		for _, id := range ids {
			if _, ok := m.types[id]; !ok {
				return false
			}
		}
		return true
	}
	switch op {
	case opTypeVector, opTypeMatrix, opTypeArray, opTypeRuntimeArray:
		return isType(a[1]) && !isType(a[0])
	case opTypeStruct:
		return isType(a[1:]...) && !isType(a[0])
	case opTypeBool, opTypeInt, opTypeFloat, opTypePointer:
		return !isType(a[0])
	case opConstantTrue, opConstantFalse, opConstant, opConstantComposite,
		opSpecConstantTrue, opSpecConstantFalse, opSpecConstant, opSpecComposite, opSpecConstantOp:
		_, twice := m.constants[a[1]]
		return !twice
	}
	return true
}

// declare records one instruction of the module's declarations.
func (m *module) declare(op uint32, a []uint32) {
	switch op {
	case opName:
		m.names[a[0]] = literalString(a[1:])
	case opMemberName:
		m.memberNames[member{a[0], int(a[1])}] = literalString(a[2:])
	case opCapability:
		m.capabilities = append(m.capabilities, a[0])
	case opExecutionMode, opExecutionModeID:
		if a[1] == modeLocalSize {
			copy(m.local[:], a[2:])
		} else if a[1] == modeLocalSizeID {
			m.localIDs = a[2:]
		}
	case opTypeBool, opTypeInt, opTypeFloat, opTypeVector, opTypeMatrix, opTypeArray, opTypeRuntimeArray, opTypeStruct,
		opTypePointer:
		m.types[a[0]] = spirvType{op, a[1:]}
	case opConstantTrue, opConstantFalse, opConstant, opConstantComposite,
		opSpecConstantTrue, opSpecConstantFalse, opSpecConstant, opSpecComposite, opSpecConstantOp:
		m.constants[a[1]] = constant{op, a[0], a[2:], len(m.constantIDs)}
		m.constantIDs = append(m.constantIDs, a[1])
	case opVariable:
		m.vars = append(m.vars, variable{a[1], a[0], a[2]})
		m.root[a[1]] = a[1]
	case opDecorate:
		m.decorate(member{a[0], -1}, a[1], a[2:])
	case opMemberDecorate:
		m.decorate(member{a[0], int(a[1])}, a[2], a[3:])
	}
}

func (m *module) decorate(at member, dec uint32, args []uint32) {
	if m.decorations[at] == nil {
		m.decorations[at] = map[uint32]uint32{}
	}
	m.decorations[at][dec] = 0
	if len(args) > 0 {
		m.decorations[at][dec] = args[0]
	}
}

// trackAccess follows pointers back to their variable and notes how it is used.
// It is exact only in a module whose functions are all inlined.
func (m *module) trackAccess(op uint32, a []uint32) {
	switch {
	case op == opAccessChain || op == opInBoundsChain:
		m.root[a[1]] = m.root[a[2]]
	case op == opLoad || op == opAtomicLoad || op == opArrayLength:
		m.read[m.root[a[2]]] = true
	case op == opStore || op == opAtomicStore:
		m.written[m.root[a[0]]] = true
	case op >= opAtomicExchange && op <= opAtomicXor && len(a) > 2:
		m.read[m.root[a[2]]], m.written[m.root[a[2]]] = true, true
	}
}

// decoration returns the first operand of a decoration and whether it is present.
func (m *module) decoration(id uint32, i int, dec uint32) (uint32, bool) {
	v, ok := m.decorations[member{id, i}][dec]
	return v, ok
}

func (m *module) pointee(ptr uint32) uint32 {
	if t := m.types[ptr]; t.op == opTypePointer {
		return t.args[1]
	}
	return 0
}

func literalString(words []uint32) string {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// value evaluates a scalar integer constant with every specialization constant at its default.
// plain is false when the value depends on a specialization constant.
func (m *module) value(id uint32) (v uint32, plain, ok bool) {
	c, found := m.constants[id]
	if !found {
		return 0, false, false
	}
	switch c.op {
	case opConstant:
		return c.args[0], true, true
	case opConstantTrue, opConstantFalse:
		return opConstantFalse - c.op, true, true
	case opSpecConstant:
		return c.args[0], false, true
	case opSpecConstantTrue, opSpecConstantFalse:
		return opSpecConstantFalse - c.op, false, true
	case opSpecConstantOp:
		v, ok = m.evaluate(c)
		return v, false, ok
	}
	return 0, false, false
}

// operand evaluates id for constant c, which may only refer to earlier constants.
func (m *module) operand(c constant, id uint32) (uint32, bool) {
	if m.constants[id].seq >= c.seq {
		return 0, false
	}
	v, _, ok := m.value(id)
	return v, ok
}

// evaluate computes the integer operations that size arrays.
func (m *module) evaluate(c constant) (uint32, bool) {
	const compositeExtract = 81
	op, args := c.args[0], c.args[1:]
	if op == compositeExtract && len(args) == 2 {
		parts := m.constants[args[0]].args
		if int(args[1]) >= len(parts) {
			return 0, false
		}
		return m.operand(c, parts[args[1]])
	}
	var x [3]uint32
	if len(args) > len(x) {
		return 0, false
	}
	for i, id := range args {
		v, ok := m.operand(c, id)
		if !ok {
			return 0, false
		}
		x[i] = v
	}
	return fold(op, x)
}

// fold applies one integer operation (SPIR-V section 3.49.13 and on).
func fold(op uint32, x [3]uint32) (uint32, bool) {
	truth := func(b bool) (uint32, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	switch op {
	case 124: // OpBitcast
		return x[0], true
	case 128: // OpIAdd
		return x[0] + x[1], true
	case 130: // OpISub
		return x[0] - x[1], true
	case 132: // OpIMul
		return x[0] * x[1], true
	case 134, 137: // OpUDiv, OpUMod
		if x[1] == 0 {
			return 0, false
		}
		if op == 134 {
			return x[0] / x[1], true
		}
		return x[0] % x[1], true
	case 135: // OpSDiv
		if x[1] == 0 {
			return 0, false
		}
		return uint32(int32(x[0]) / int32(x[1])), true
	case 169: // OpSelect
		if x[0] != 0 {
			return x[1], true
		}
		return x[2], true
	case 170, 171: // OpIEqual, OpINotEqual
		return truth((x[0] == x[1]) == (op == 170))
	case 172, 176: // OpUGreaterThan, OpULessThan
		return truth(x[0] != x[1] && (x[0] > x[1]) == (op == 172))
	case 194: // OpShiftRightLogical
		return x[0] >> x[1], true
	case 196: // OpShiftLeftLogical
		return x[0] << x[1], true
	}
	return 0, false
}

// sharedBytes bounds the size of all workgroup variables with specialization constants at their defaults. Vulkan lets a
// driver take what std430 layout takes, in any order of the variables; starting each at a multiple of 16 is never less.
func (m *module) sharedBytes() (uint32, error) {
	var sum uint32
	for _, v := range m.vars {
		if v.class != classWorkgroup {
			continue
		}
		n, _, ok := m.std430(m.pointee(v.typ))
		if !ok {
			return 0, fmt.Errorf("shared variable %q: its size cannot be computed: size it by constants, "+
				"specialization constants and + - * / << >>", m.names[v.id])
		}
		sum += roundUp(n, 16)
	}
	return sum, nil
}

func roundUp(n, to uint32) uint32 { return (n + to - 1) / to * to }

// std430 returns the size and alignment of a type in bytes.
func (m *module) std430(id uint32) (size, align uint32, ok bool) {
	t := m.types[id]
	switch t.op {
	case opTypeBool:
		return 4, 4, true
	case opTypeInt, opTypeFloat:
		n := max(t.args[0]/8, 1)
		return n, n, true
	case opTypeVector:
		n, _, ok := m.std430(t.args[0])
		if t.args[1] == 2 {
			return 2 * n, 2 * n, ok
		}
		return t.args[1] * n, 4 * n, ok
	case opTypeMatrix:
		n, a, ok := m.std430(t.args[0])
		return t.args[1] * roundUp(n, max(a, 1)), a, ok
	case opTypeArray:
		n, a, ok := m.std430(t.args[0])
		count, _, known := m.value(t.args[1])
		return count * roundUp(n, max(a, 1)), a, ok && known
	case opTypeStruct:
		align, ok = 1, true
		for _, e := range t.args {
			n, a, fine := m.std430(e)
			a = max(a, 1)
			size, align, ok = roundUp(size, a)+n, max(align, a), ok && fine
		}
		return roundUp(size, align), align, ok
	}
	return 0, 1, false
}
