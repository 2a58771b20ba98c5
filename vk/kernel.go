package vk

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Binding is one storage buffer of a kernel; its binding number in set 0 is its index in Kernel.Bindings.
type Binding struct {
	Name   string
	Access Access // what the kernel does with it
}

// Spec is one specialization constant of a kernel, four bytes wide.
type Spec struct {
	Name    string
	ID      uint32
	Default uint32 // bits of the shader's own value
}

// subgroupSpec is the name of the specialization constant that stands for the subgroup size: see Kernel.
const subgroupSpec = "SUBGROUP_SIZE"

// Kernel is the interface of one compute shader and its code. A Kernel is used by address: there should be one per
// shader.
//
// A kernel with a specialization constant named SUBGROUP_SIZE is compiled for a subgroup of that size where the device
// lets one choose, and always is given the size that it gets. The value 0 means DeviceInfo.Limits.SubgroupSize, and so
// does the shader's default where the device cannot have that; any other value that the device cannot have is an error.
type Kernel struct {
	Name        string
	SPIRV       []byte
	Local       [3]uint32 // workgroup size, the first one only a default if LocalSpecID is not -1
	LocalSpecID int       // id of the specialization constant that sets the workgroup's first dimension, or -1
	Bindings    []Binding
	PushSize    uint32 // bytes of push constants
	Specs       []Spec
}

type Pass interface {
	// Kernel returns the kernel, the same address for every pass of it.
	Kernel() *Kernel
	// Args appends the pass's buffers to views[:0], one per binding, and returns them with the push constants and the
	// values of the specialization constants, in the order of Kernel.Specs.
	Args(views []View) (used []View, push []byte, spec []uint32)
}

// Derive returns a pass of a kernel that is much like that of base: base's values under the names that both have, also
// in Push and Spec, and then what set changes.
func Derive[P any](base Pass, set func(*P)) *P {
	p := new(P)
	copyNamed(reflect.ValueOf(p).Elem(), reflect.ValueOf(base).Elem())
	set(p)
	return p
}

func copyNamed(to, from reflect.Value) {
	for i := range to.NumField() {
		name := to.Type().Field(i).Name
		switch f := from.FieldByName(name); {
		case !f.IsValid():
		case name == "Push" || name == "Spec":
			copyNamed(to.Field(i), f)
		default:
			to.Field(i).Set(f) // panics where the types differ
		}
	}
}

type layout struct{ set, pipeline uint64 }

// pipeKey tells pipelines apart: spec is the bytes of the specialization constants.
type pipeKey struct {
	kernel *Kernel
	spec   string
}

// pipeSlot holds a pipeline once it is compiled; its lock is held meanwhile.
type pipeSlot struct {
	mu   sync.Mutex
	pipe *pipeline
}

type pipeline struct {
	layout
	handle   uint64
	local    [3]uint32 // workgroup size
	subgroup uint32    // subgroup size, as far as it is known
}

func keyOf(k *Kernel, spec []uint32) pipeKey {
	bytes := make([]byte, 0, 4*len(spec))
	for _, s := range spec {
		bytes = binary.LittleEndian.AppendUint32(bytes, s)
	}
	return pipeKey{k, string(bytes)}
}

// kernels are those of a device in compiled form.
type kernels struct {
	dev   *Device
	cache *pipelineCache

	mu        sync.Mutex // guards the two maps
	layouts   map[*Kernel]*layout
	pipes     map[pipeKey]*pipeSlot
	compiled  atomic.Int32
	compiling atomic.Int64 // time.Duration
}

func newKernels(d *Device) *kernels {
	return &kernels{dev: d, layouts: map[*Kernel]*layout{}, pipes: map[pipeKey]*pipeSlot{}}
}

// pipeline returns the compiled form of k for the given specialization constants, compiling it the first time.
func (ks *kernels) pipeline(k *Kernel, spec []uint32) (*pipeline, error) {
	if len(spec) != len(k.Specs) {
		return nil, invalid("compile", k.Name, "%d specialization constants given, it has %d", len(spec), len(k.Specs))
	}
	shape, err := ks.shape(k, spec)
	if err != nil {
		return nil, err
	}
	key := keyOf(k, shape.spec)
	ks.mu.Lock()
	slot := ks.pipes[key]
	if slot == nil {
		slot = &pipeSlot{}
		ks.pipes[key] = slot
	}
	ks.mu.Unlock()
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.pipe == nil {
		slot.pipe, err = ks.compile(k, shape)
	}
	return slot.pipe, err
}

// Compile compiles what programs of these lists need, several kernels at a time, because a driver may take a second for
// one. Build does so as well; but where several lists follow each other, all cores are busy only with all kernels at
// once.
func (d *Device) Compile(lists ...*Recorder) error {
	var ops []op
	for _, r := range lists {
		r.flush()
		ops = append(ops, r.ops...)
	}
	_, err := d.kernels.compileAll(ops)
	return err
}

// Form is a kernel with specialization constants, in the order of Kernel.Specs.
type Form struct {
	Kernel *Kernel
	Spec   []uint32
}

// Forms returns the forms of kernels that a list dispatches, each where it is first.
func (r *Recorder) Forms() (list []Form) {
	r.flush()
	for _, i := range formsOf(r.ops) {
		list = append(list, Form{r.ops[i].kernel, r.ops[i].spec})
	}
	return list
}

// formsOf returns the first op that dispatches each form of a kernel.
func formsOf(ops []op) (first []int) {
	seen := map[pipeKey]bool{}
	for i := range ops {
		if key := keyOf(ops[i].kernel, ops[i].spec); ops[i].dispatches() && !seen[key] {
			seen[key] = true
			first = append(first, i)
		}
	}
	return first
}

// compileAll compiles what the ops need, and returns the pipeline of each that dispatches.
func (ks *kernels) compileAll(ops []op) ([]*pipeline, error) {
	start, before := time.Now(), ks.compiled.Load()
	pipes, errs := make([]*pipeline, len(ops)), make([]error, len(ops))
	each := func(i int) { pipes[i], errs[i] = ks.pipeline(ops[i].kernel, ops[i].spec) }
	// First one op of each kernel's form: the others would wait for it, each in the place of a kernel that could be
	// compiled meanwhile. And the largest first: nothing is left to do beside the one that is compiled last.
	first := formsOf(ops)
	slices.SortStableFunc(first, func(i, j int) int { return len(ops[j].kernel.SPIRV) - len(ops[i].kernel.SPIRV) })
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for _, i := range first {
		room <- struct{}{}
		wg.Go(func() {
			each(i)
			<-room
		})
	}
	wg.Wait()
	for i := range ops {
		if ops[i].dispatches() && pipes[i] == nil && errs[i] == nil {
			each(i)
		}
	}
	if ks.compiled.Load() > before {
		ks.compiling.Add(int64(time.Since(start)))
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return pipes, nil
}

type shape struct {
	spec          []uint32
	local         [3]uint32
	subgroup      uint32 // expected size
	required      uint32 // size asked of the driver, or 0
	fullSubgroups bool
}

// shape decides sizes and checks them against the device's limits.
func (ks *kernels) shape(k *Kernel, spec []uint32) (s shape, err error) {
	l := &ks.dev.info.Limits
	s = shape{spec: slices.Clone(spec), local: k.Local, subgroup: l.SubgroupSize}
	if usesSubgroups(k.SPIRV) && l.MaxSubgroupSize > maxSubgroup {
		s.required = s.subgroup // the driver's own choice may be wider than kernels can use
	}
	for i, c := range k.Specs {
		if int(c.ID) == k.LocalSpecID {
			s.local[0] = spec[i]
		}
		if c.Name == subgroupSpec {
			if s.subgroup, err = ks.subgroupSize(k, c, spec[i]); err != nil {
				return s, err
			}
			s.spec[i] = s.subgroup
			if l.MinSubgroupSize < l.MaxSubgroupSize {
				s.required = s.subgroup
			}
		}
	}
	count := uint64(s.local[0]) * uint64(s.local[1]) * uint64(s.local[2])
	for i, n := range s.local {
		if n == 0 || n > l.MaxComputeWorkGroupSize[i] {
			return s, invalid("compile", k.Name, "workgroup of %v invocations, the device allows 1 to %v", s.local,
				l.MaxComputeWorkGroupSize)
		}
	}
	if count > uint64(l.MaxComputeWorkGroupInvocations) {
		return s, invalid("compile", k.Name, "workgroup of %d invocations, maxComputeWorkGroupInvocations is %d", count,
			l.MaxComputeWorkGroupInvocations)
	}
	if s.required > 0 && count > uint64(s.required)*uint64(l.MaxComputeWorkgroupSubgroups) {
		return s, invalid("compile", k.Name,
			"workgroup of %d invocations in subgroups of %d, maxComputeWorkgroupSubgroups is %d", count, s.required,
			l.MaxComputeWorkgroupSubgroups)
	}
	// Only where the kernel uses subgroups: the demand makes Intel's compiler take its widest ones, and spill
	// registers.
	s.fullSubgroups = usesSubgroups(k.SPIRV) && ks.dev.info.Features.ComputeFullSubgroups && s.subgroup > 0 &&
		s.local[0]%s.subgroup == 0
	return s, nil
}

func (ks *kernels) subgroupSize(k *Kernel, c Spec, want uint32) (uint32, error) {
	l := &ks.dev.info.Limits
	switch {
	case want == 0:
		return l.SubgroupSize, nil
	case want >= l.MinSubgroupSize && want <= l.MaxSubgroupSize && want&(want-1) == 0:
		return want, nil
	case want == c.Default:
		return l.SubgroupSize, nil
	}
	return 0, invalid("compile", k.Name, "subgroups of %d asked for, %s has %d to %d", want, ks.dev.info.Name,
		l.MinSubgroupSize, l.MaxSubgroupSize)
}

func (ks *kernels) compile(k *Kernel, s shape) (*pipeline, error) {
	lay, err := ks.layout(k)
	if err != nil {
		return nil, err
	}
	if len(k.SPIRV) == 0 || len(k.SPIRV)%4 != 0 {
		return nil, invalid("compile", k.Name, "its SPIR-V is %d bytes long", len(k.SPIRV))
	}
	words := make([]uint32, len(k.SPIRV)/4) // a copy, because embedded bytes may lie at any address
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(k.SPIRV[4*i:])
	}
	module, r := createShader(ks.dev.h, words)
	if r < 0 {
		return nil, ks.dev.check("vkCreateShaderModule", k.Name, r)
	}
	defer destroyShader(ks.dev.h, module)
	info := pipelineInfo{module: module, layout: lay.pipeline, cache: ks.cache.handle, requiredSize: s.required,
		fullSubgroups: s.fullSubgroups}
	for i, c := range k.Specs {
		info.specs = append(info.specs, c.ID, s.spec[i])
	}
	h, r := ks.dev.shim.createPipeline(info)
	if r < 0 {
		return nil, ks.dev.check("vkCreateComputePipelines", k.Name, r)
	}
	ks.cache.dirty.Store(true)
	ks.compiled.Add(1)
	ks.dev.shim.name(objectPipeline, h, k.Name)
	return &pipeline{layout: lay, handle: h, local: s.local, subgroup: s.subgroup}, nil
}

func (ks *kernels) layout(k *Kernel) (layout, error) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if l := ks.layouts[k]; l != nil {
		return *l, nil
	}
	lim := &ks.dev.info.Limits
	if n := uint32(len(k.Bindings)); n > lim.MaxPerStageDescriptorStorageBuffers {
		return layout{}, invalid("compile", k.Name, "%d storage buffers, maxPerStageDescriptorStorageBuffers is %d", n,
			lim.MaxPerStageDescriptorStorageBuffers)
	}
	if k.PushSize%4 != 0 || k.PushSize > lim.MaxPushConstantsSize {
		return layout{}, invalid("compile", k.Name, "%d bytes of push constants, maxPushConstantsSize is %d",
			k.PushSize, lim.MaxPushConstantsSize)
	}
	set, r := ks.dev.shim.createSetLayout(len(k.Bindings))
	if r < 0 {
		return layout{}, ks.dev.check("vkCreateDescriptorSetLayout", k.Name, r)
	}
	pipe, r := ks.dev.shim.createPipelineLayout(set, k.PushSize)
	if r < 0 {
		destroyLayouts(ks.dev.h, set, 0)
		return layout{}, ks.dev.check("vkCreatePipelineLayout", k.Name, r)
	}
	ks.layouts[k] = &layout{set, pipe}
	return *ks.layouts[k], nil
}

// close ends all pipelines and layouts.
func (ks *kernels) close() {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	for _, s := range ks.pipes {
		if s.pipe != nil {
			destroyPipeline(ks.dev.h, s.pipe.handle)
		}
	}
	for _, l := range ks.layouts {
		destroyLayouts(ks.dev.h, l.set, l.pipeline)
	}
	clear(ks.pipes)
	clear(ks.layouts)
}

type Pipelines struct {
	N       int     // made so far
	Seconds float64 // of the host
	// there was a file of those of an earlier run; the driver says itself what it takes from there, or from files of
	// its own
	Cached bool
}

func (d *Device) Pipelines() Pipelines {
	return Pipelines{N: int(d.kernels.compiled.Load()), Seconds: time.Duration(d.kernels.compiling.Load()).Seconds(),
		Cached: d.kernels.cache.cached}
}

// describeSpecs words the specialization constants of a pass, for Recorder.String.
func describeSpecs(k *Kernel, spec []uint32) string {
	var parts []string
	for i, c := range k.Specs {
		if i < len(spec) && spec[i] != c.Default {
			parts = append(parts, fmt.Sprintf("%s=%d", c.Name, spec[i]))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " {" + strings.Join(parts, " ") + "}"
}

// usesSubgroups reports whether a module declares the capability GroupNonUniform. Capabilities come first in a module,
// after five words of header.
func usesSubgroups(spirv []byte) bool {
	const opCapability, groupNonUniform = 17, 61
	for at := 20; at+8 <= len(spirv); {
		word := binary.LittleEndian.Uint32(spirv[at:])
		if word&0xffff != opCapability {
			return false
		}
		if binary.LittleEndian.Uint32(spirv[at+4:]) == groupNonUniform {
			return true
		}
		at += 4 * int(word>>16)
	}
	return false
}
