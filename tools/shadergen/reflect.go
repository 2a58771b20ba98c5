package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Limits every device must meet (the floor of supported devices).
const (
	maxPushBytes   = 128
	maxBindings    = 16
	maxInvocations = 256
	maxSharedBytes = 16384
)

// floorCapabilities are the SPIR-V capabilities that every supported device has.
var floorCapabilities = map[uint32]bool{
	// Shader, GroupNonUniform, Vote, Arithmetic, Ballot, Shuffle
	1: true, 61: true, 62: true, 63: true, 64: true, 65: true,
}

// packedCapabilities are what variants called packed need besides, and run where the device has them:
// DotProductInput4x8BitPacked, DotProduct.
var packedCapabilities = []uint32{6018, 6019}

// capabilityHints names those that are likely to be met by accident, with what to write instead.
var capabilityHints = map[uint32]struct{ name, remedy string }{
	9:  {"Float16", "use float"},
	10: {"Float64", "use float"},
	11: {"Int64", "use uvec2"},
	12: {"Int64Atomics", "use 32-bit atomics"},
	22: {"Int16", "use int"},
	39: {"Int8", "use int"},
	66: {"GroupNonUniformShuffleRelative",
		"use subgroupShuffle(x, gl_SubgroupInvocationID - n) instead of subgroupShuffleUp or Down"},
	67:   {"GroupNonUniformClustered", "use subgroupShuffleXor"},
	68:   {"GroupNonUniformQuad", "use subgroupShuffleXor"},
	4433: {"StorageBuffer16BitAccess", "pack into uint"},
	4448: {"StorageBuffer8BitAccess", "pack into uint"},
	6033: {"AtomicFloat32AddEXT", "sum in a fixed order"},
}

// reflector turns a module into a kernel and collects every complaint.
type reflector struct {
	m, opt *module
	k      *kernel
	src    *source
	errs   []error
}

func (r *reflector) fail(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s: "+format, append([]any{r.k.file}, args...)...))
}

// reflectKernel derives the interface from the unoptimised module, which has the names, and checks it
// against the optimised one, which is what ships.
func reflectKernel(name, file string, plain, optimised []byte, src *source) (*kernel, error) {
	m, err := parseModule(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	opt, err := parseModule(optimised)
	if err != nil {
		return nil, fmt.Errorf("%s: optimised: %w", file, err)
	}
	k := &kernel{name: name, goName: camel(name), file: file, localSpec: -1, spv: optimised, doc: src.header}
	r := &reflector{m: m, opt: opt, k: k, src: src}
	r.capabilities()
	r.workgroup()
	r.specs()
	r.interfaces()
	r.fieldNames()
	if shared, err := m.sharedBytes(); err != nil {
		r.fail("%v", err)
	} else if shared > maxSharedBytes {
		r.fail("%d bytes of shared memory with default specialization constants, the smallest supported device has "+
			"%d: use smaller shared arrays, and float arrays instead of vec3, which may take 16 bytes", shared,
			maxSharedBytes)
	}
	return k, errors.Join(r.errs...)
}

func (r *reflector) capabilities() {
	for _, c := range r.opt.capabilities {
		if floorCapabilities[c] || strings.HasSuffix(r.k.name, "_packed") && slices.Contains(packedCapabilities, c) {
			continue
		}
		hint, known := capabilityHints[c]
		if !known {
			hint.name, hint.remedy = fmt.Sprint(c), "use 32-bit types and subgroup vote, arithmetic, ballot or shuffle"
		}
		r.fail("needs SPIR-V capability %s, which not every supported device has: %s", hint.name, hint.remedy)
	}
}

// workgroup finds the local size, its default when it is a specialization constant.
func (r *reflector) workgroup() {
	k := r.k
	k.local = r.m.local
	ids := r.m.localIDs
	for _, id := range r.m.constantIDs {
		if b, ok := r.m.decoration(id, -1, decBuiltIn); ok && b == builtInWorkgroupSize {
			ids = r.m.constants[id].args
		}
	}
	for i := 0; i < len(ids) && i < 3; i++ {
		v, _, ok := r.m.value(ids[i])
		if !ok {
			r.fail("workgroup size component %d is not a constant", i)
			continue
		}
		k.local[i] = v
		specID, isSpec := r.m.decoration(ids[i], -1, decSpecID)
		if isSpec && i > 0 {
			r.fail("local_size_%c_id is not supported: only local_size_x can be a specialization constant", "xyz"[i])
		} else if isSpec {
			k.localSpec = int(specID)
		}
	}
	if !r.src.declaresLocalSize {
		r.fail("local_size_x is missing (its default of 1 is never wanted): write layout(local_size_x = 256) in;")
	}
	if n := k.local[0] * k.local[1] * k.local[2]; n > maxInvocations {
		r.fail("workgroup of %d invocations, the smallest supported device has %d: use a smaller local_size", n,
			maxInvocations)
	}
}

// specs lists the specialization constants that the optimised module still uses.
func (r *reflector) specs() {
	used := map[uint32]bool{}
	for _, id := range r.opt.constantIDs {
		if s, ok := r.opt.decoration(id, -1, decSpecID); ok {
			used[s] = true
		}
	}
	byID := map[uint32]spec{}
	for _, id := range r.m.constantIDs {
		specID, ok := r.m.decoration(id, -1, decSpecID)
		if !ok {
			continue
		}
		s := r.spec(id, specID)
		if !used[specID] && int(specID) != r.k.localSpec {
			r.k.notes = append(r.k.notes,
				fmt.Sprintf("%s: specialization constant %s is never used and was left out", r.k.file, s.name))
			continue
		}
		if old, ok := byID[specID]; ok && (old.def != s.def || old.typ != s.typ) {
			r.fail("constant_id %d is declared twice with different types or defaults: give each constant its own id",
				specID)
		}
		byID[specID] = s
	}
	for _, s := range byID {
		r.k.specs = append(r.k.specs, s)
	}
	slices.SortFunc(r.k.specs, func(a, b spec) int { return int(a.id) - int(b.id) })
}

func (r *reflector) spec(id, specID uint32) spec {
	c := r.m.constants[id]
	s := spec{id: specID, name: r.m.names[id], goName: camel(r.m.names[id])}
	if int(specID) == r.k.localSpec {
		s.name, s.goName = "WorkgroupSize", "WorkgroupSize"
	}
	switch t := r.m.types[c.typ]; {
	case c.op == opSpecConstantTrue:
		r.fail("specialization constant %s is a bool with default true, but Go's zero value is false: invert its "+
			"meaning so that the default is false", s.name)
		s.typ = "bool"
	case c.op == opSpecConstantFalse:
		s.typ = "bool"
	case t.op == opTypeInt && t.args[0] == 32 && t.args[1] == 1:
		s.typ, s.def = "int32", c.args[0]
	case t.op == opTypeInt && t.args[0] == 32:
		s.typ, s.def = "uint32", c.args[0]
	case t.op == opTypeFloat && t.args[0] == 32:
		s.typ, s.def = "float32", c.args[0]
	default:
		r.fail("specialization constant %s has an unsupported type: use bool, int, uint or float", s.name)
	}
	return s
}

// interfaces walks the module's variables: storage buffers, the push block, and what is refused.
func (r *reflector) interfaces() {
	for _, v := range r.m.vars {
		switch v.class {
		case classStorageBuffer:
			r.storage(v)
		case classPushConstant:
			r.pushBlock(v)
		case classUniform, classUniformConstant:
			r.fail("%s is a uniform block, image or sampler: only storage buffers and one push constant block are "+
				"supported", r.varName(v))
		}
	}
	bs := r.k.bindings
	slices.SortFunc(bs, func(a, b binding) int { return int(a.number) - int(b.number) })
	for i, b := range bs {
		if int(b.number) != i {
			r.fail("binding numbers must be 0, 1, 2, ... without a gap or repeat, but %s has %d where %d is expected",
				b.name, b.number, i)
			break
		}
	}
	if n := r.src.maxBinding; n >= len(bs) && len(r.errs) == 0 {
		r.fail("binding %d is declared but never used: use it or delete its declaration", n)
	}
	if len(bs) > maxBindings {
		r.fail("%d storage bindings, the smallest supported device has %d: merge buffers or split the kernel", len(bs),
			maxBindings)
	}
	if p := r.k.push; p != nil && p.size > maxPushBytes {
		r.fail("push constant block of %d bytes, the limit is %d: move what changes per step into a storage buffer",
			p.size, maxPushBytes)
	}
}

func (r *reflector) varName(v variable) string {
	if n := r.m.names[v.id]; n != "" {
		return n
	}
	return r.m.names[r.m.pointee(v.typ)]
}

// storage adds one storage buffer binding.
func (r *reflector) storage(v variable) {
	m, block := r.m, r.m.pointee(v.typ)
	number, _ := m.decoration(v.id, -1, decBinding)
	set, _ := m.decoration(v.id, -1, decDescriptorSet)
	b := binding{number: number, name: r.varName(v), doc: r.src.bindings[int(number)]}
	where := fmt.Sprintf("binding %d (%s)", number, b.name)
	t := m.types[block]
	if t.op != opTypeStruct || len(t.args) == 0 {
		r.fail("%s: arrays of buffers are not supported: declare one buffer per binding", where)
		return
	}
	if set != 0 {
		r.fail("%s: descriptor set %d: only set 0 is supported", where, set)
	}
	if first := m.types[t.args[0]]; len(t.args) == 1 && first.op == opTypeRuntimeArray {
		b.name = m.memberNames[member{block, 0}]
		where = fmt.Sprintf("binding %d (%s)", number, b.name)
		elem, err := r.typeOf(first.args[0])
		if stride, _ := m.decoration(t.args[0], -1, decArrayStride); err == nil && stride != elem.size {
			err = fmt.Errorf("elements are %d bytes apart but hold %d: add `scalar` to the block's layout", stride,
				elem.size)
		}
		if err != nil {
			r.fail("%s: %v", where, err)
			return
		}
		b.elem = elem
	} else {
		s, err := r.structOf(block)
		if err != nil {
			r.fail("%s: %v", where, err)
			return
		}
		b.elem = typeRef{struc: s, size: s.size}
	}
	b.goName = camel(b.name)
	r.access(&b, v, block, where)
	r.k.bindings = append(r.k.bindings, b)
}

// access reads the qualifiers, which compilers put on the members or on the variable,
// and compares them with what the optimised module does.
func (r *reflector) access(b *binding, v variable, block uint32, where string) {
	has := func(dec uint32) bool {
		if _, ok := r.m.decoration(v.id, -1, dec); ok {
			return true
		}
		for i := range r.m.types[block].args {
			if _, ok := r.m.decoration(block, i, dec); !ok {
				return false
			}
		}
		return true
	}
	b.read, b.write = !has(decNonReadable), !has(decNonWritable)
	if !b.read && !b.write {
		r.fail("%s: both readonly and writeonly: delete the binding or one qualifier", where)
	}
	shipped := uint32(0)
	for _, o := range r.opt.vars {
		if n, ok := r.opt.decoration(o.id, -1, decBinding); ok && n == b.number && o.class == classStorageBuffer {
			shipped = o.id
		}
	}
	switch {
	case shipped == 0:
		r.fail("%s: dead binding, nothing the kernel writes depends on it: use it or delete its declaration", where)
	case b.read && b.write && !r.opt.written[shipped]:
		r.k.notes = append(r.k.notes,
			fmt.Sprintf("%s: %s: never written: qualify it readonly to save a barrier", r.k.file, where))
	case b.read && b.write && !r.opt.read[shipped]:
		r.k.notes = append(r.k.notes,
			fmt.Sprintf("%s: %s: never read: qualify it writeonly to save a barrier", r.k.file, where))
	}
}

func (r *reflector) pushBlock(v variable) {
	block := r.m.pointee(v.typ)
	s, err := r.structOf(block)
	if err != nil {
		r.fail("push constant block: %v", err)
		return
	}
	r.k.structs = slices.DeleteFunc(r.k.structs, func(o *structType) bool { return o == s })
	s.goName = r.k.goName + "Push"
	r.k.push = s
}

// typeOf renders a storage type, refusing what Go cannot lay out the same way.
func (r *reflector) typeOf(id uint32) (typeRef, error) {
	t := r.m.types[id]
	switch t.op {
	case opTypeInt, opTypeFloat:
		if t.args[0] != 32 {
			return typeRef{}, fmt.Errorf("a %d-bit number is not supported: use int, uint or float", t.args[0])
		}
		name := "float32"
		if t.op == opTypeInt {
			name = [2]string{"uint32", "int32"}[t.args[1]&1]
		}
		return typeRef{scalar: name, size: 4}, nil
	case opTypeVector:
		e, err := r.typeOf(t.args[0])
		e.dims, e.size = []uint32{t.args[1]}, e.size*t.args[1]
		return e, err
	case opTypeArray:
		return r.arrayOf(id, t)
	case opTypeStruct:
		s, err := r.structOf(id)
		if err != nil {
			return typeRef{}, err
		}
		return typeRef{struc: s, size: s.size}, nil
	case opTypeMatrix:
		return typeRef{}, errors.New("a matrix is not supported (its columns may be padded): use an array of vectors " +
			"or of floats")
	case opTypeRuntimeArray:
		return typeRef{}, errors.New("an array without a length must be the only member of its block: give it a " +
			"binding of its own")
	}
	return typeRef{}, fmt.Errorf("unsupported type (SPIR-V opcode %d): use int, uint, float, vectors, arrays and "+
		"structs", t.op)
}

func (r *reflector) arrayOf(id uint32, t spirvType) (typeRef, error) {
	e, err := r.typeOf(t.args[0])
	if err != nil {
		return e, err
	}
	count, plain, ok := r.m.value(t.args[1])
	if !ok || !plain {
		return e, errors.New("an array sized by a specialization constant has no fixed layout: size it by a plain " +
			"constant")
	}
	if stride, _ := r.m.decoration(id, -1, decArrayStride); stride != e.size {
		return e, fmt.Errorf("array elements are %d bytes apart but hold %d: add `scalar` to the block's layout",
			stride, e.size)
	}
	e.dims, e.size = append([]uint32{count}, e.dims...), e.size*count
	return e, nil
}

// structOf lays out a struct or block and registers it with the kernel.
func (r *reflector) structOf(id uint32) (*structType, error) {
	m := r.m
	s := &structType{name: m.names[id], goName: camel(m.names[id])}
	s.doc = r.src.structs[s.name]
	for i, e := range m.types[id].args {
		name := m.memberNames[member{id, i}]
		t, err := r.typeOf(e)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", s.name, name, err)
		}
		offset, _ := m.decoration(id, i, decOffset)
		if offset != s.size {
			return nil, fmt.Errorf(
				"%s.%s is at byte %d where Go would put it at %d: add `scalar` to the block's layout", s.name, name,
				offset, s.size)
		}
		f := field{name: name, goName: camel(name), typ: t, offset: offset}
		if slices.ContainsFunc(s.fields, func(o field) bool { return o.goName == f.goName }) {
			return nil, fmt.Errorf("%s.%s: another member also becomes %s in Go: rename one", s.name, name, f.goName)
		}
		s.fields = append(s.fields, f)
		s.size += t.size
	}
	for _, o := range r.k.structs {
		if o.goName != s.goName {
			continue
		}
		if !o.same(s) {
			return nil, fmt.Errorf("struct %s has two layouts in this kernel: rename one", s.name)
		}
		return o, nil
	}
	r.k.structs = append(r.k.structs, s)
	return s, nil
}

// fieldNames refuses names that would collide in the generated struct.
func (r *reflector) fieldNames() {
	taken := map[string]string{"Push": "the push block", "Spec": "the specialization constants", "Kernel": "a method",
		"Args": "a method"}
	for _, b := range r.k.bindings {
		if other, ok := taken[b.goName]; ok {
			r.fail("binding %d (%s): its Go name %s is already used by %s: rename it", b.number, b.name, b.goName,
				other)
		}
		taken[b.goName] = fmt.Sprintf("binding %d", b.number)
	}
	specs := map[string]bool{}
	for _, s := range r.k.specs {
		if s.goName == "" || specs[s.goName] {
			r.fail("specialization constant %d: its Go name %q is empty or used twice: rename it", s.id, s.goName)
		}
		specs[s.goName] = true
	}
}
