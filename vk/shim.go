package vk

/*
#cgo linux LDFLAGS: -ldl
#cgo CFLAGS: -std=gnu11 -O2
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"unsafe"
)

// This file is the Go side of the shim (shim.h says what it is for). Nothing else in the package uses cgo.

// deviceCaps is what the shim reads of a physical device, deviceExts which optional extensions that has, deviceMemory
// its heaps and memory types.
type (
	deviceCaps   = C.vkx_caps
	deviceExts   = C.vkx_exts
	deviceMemory = C.vkx_memory
	setWrite     = C.vkx_write
)

// shimInstance and shimDevice are the shim's own objects.
type (
	shimInstance struct{ p *C.vkx_inst }
	shimDevice   struct{ p *C.vkx_dev }
)

// cbool is C's 0 or 1.
func cbool(b bool) C.uint32_t {
	if b {
		return 1
	}
	return 0
}

// cText reads a string of a fixed array.
func cText(b []C.char) string {
	return cString(unsafe.Slice((*byte)(unsafe.Pointer(&b[0])), len(b)))
}

// openLoader loads the Vulkan loader and returns its vkGetInstanceProcAddr.
func openLoader(path string) (unsafe.Pointer, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	why := (*C.char)(C.calloc(1, 512))
	defer C.free(unsafe.Pointer(why))
	p := C.vkx_load(name, why, 512)
	if p == nil {
		return nil, errors.New(C.GoString(why))
	}
	return p, nil
}

func loaderVersion(procAddr unsafe.Pointer) uint32 { return uint32(C.vkx_api_version(procAddr)) }

func hasLayer(procAddr unsafe.Pointer, layer string) bool {
	name := C.CString(layer)
	defer C.free(unsafe.Pointer(name))
	return C.vkx_has_layer(procAddr, name) != 0
}

func createInstance(procAddr unsafe.Pointer, api uint32, validate, debugUtils bool) (shimInstance, string, Result) {
	var r C.int32_t
	var call *C.char
	p := C.vkx_create_instance(procAddr, C.uint32_t(api), C.int32_t(cbool(validate)), C.int32_t(cbool(debugUtils)), &r,
		&call)
	return shimInstance{p}, C.GoString(call), Result(r)
}

func (s shimInstance) handle() uint64 { return uint64(uintptr(C.vkx_instance_handle(s.p))) }

func (s shimInstance) free() { C.vkx_free_instance(s.p) }

// messages returns what the validation layer said since the last call, and how many messages there was no room for.
func (s shimInstance) messages() (list []string, dropped int) {
	const size = 16 << 10
	buf := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(buf))
	for C.vkx_next_message(s.p, buf, size) != 0 {
		list = append(list, C.GoString(buf))
	}
	return list, int(C.vkx_dropped_messages(s.p))
}

func (s shimInstance) extensions(pd uint64) (map[string]bool, Result) {
	var names *[256]C.char
	var n C.uint32_t
	r := Result(C.vkx_device_extensions(s.p, ptr(pd), &names, &n))
	if r < 0 {
		return nil, r
	}
	set := make(map[string]bool, n)
	for _, name := range unsafe.Slice(names, n) {
		set[cText(name[:])] = true
	}
	C.free(unsafe.Pointer(names))
	return set, r
}

func (s shimInstance) caps(pd uint64, have deviceExts) (c deviceCaps) {
	C.vkx_query(s.p, ptr(pd), &have, &c)
	return c
}

func (s shimInstance) memory(pd uint64, budget bool) (m deviceMemory) {
	C.vkx_query_memory(s.p, ptr(pd), C.int32_t(cbool(budget)), &m)
	return m
}

// computeFamily returns the queue family for compute work and its valid timestamp bits: one that has graphics too where
// there is one, because that is the family that every driver tunes and tests first.
func (s shimInstance) computeFamily(pd uint64) (family, timestampBits uint32, ok bool) {
	var list [32]C.vkx_family
	n := C.vkx_families(s.p, ptr(pd), &list[0], 32)
	const graphics, compute = 1, 2
	for _, want := range [...]C.uint32_t{graphics | compute, compute} {
		for _, f := range list[:n] {
			if f.flags&want == want && f.count > 0 {
				return uint32(f.family), uint32(f.timestamp_bits), true
			}
		}
	}
	return 0, 0, false
}

func (s shimInstance) createDevice(pd uint64, family uint32, want deviceCaps, exts deviceExts) (shimDevice, Result) {
	var r C.int32_t
	p := C.vkx_create_device(s.p, ptr(pd), C.uint32_t(family), &want, &exts, &r)
	return shimDevice{p}, Result(r)
}

func (d shimDevice) handle() uint64 { return uint64(uintptr(C.vkx_device_handle(d.p))) }

func (d shimDevice) free() { C.vkx_free_device(d.p) }

func pair(r C.vkx_u64) (uint64, Result) { return uint64(r.value), Result(r.result) }

func (d shimDevice) createTimeline() (uint64, Result) { return pair(C.vkx_create_timeline(d.p)) }

func (d shimDevice) createSetLayout(n int) (uint64, Result) {
	return pair(C.vkx_create_set_layout(d.p, C.uint32_t(n)))
}

func (d shimDevice) createPipelineLayout(setLayout uint64, pushSize uint32) (uint64, Result) {
	return pair(C.vkx_create_pipeline_layout(d.p, C.uint64_t(setLayout), C.uint32_t(pushSize)))
}

func (d shimDevice) createDescriptorPool(sets, buffers int) (uint64, Result) {
	return pair(C.vkx_create_descriptor_pool(d.p, C.uint32_t(sets), C.uint32_t(buffers)))
}

// pipelineInfo describes a compute pipeline. specs holds pairs of constant id and value.
type pipelineInfo struct {
	module, layout, cache uint64
	specs                 []uint32
	requiredSize          uint32 // subgroup size asked of the driver; 0 leaves the choice to it
	fullSubgroups         bool
}

func (d shimDevice) createPipeline(p pipelineInfo) (uint64, Result) {
	c := C.vkx_pipeline{module: C.uint64_t(p.module), layout: C.uint64_t(p.layout), cache: C.uint64_t(p.cache),
		n_specs: C.uint32_t(len(p.specs) / 2), required_size: C.uint32_t(p.requiredSize),
		full_subgroups: cbool(p.fullSubgroups)}
	if len(p.specs) == 0 {
		return pair(C.vkx_create_pipeline(d.p, &c))
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&p.specs[0])
	c.entries = (*C.uint32_t)(unsafe.Pointer(&p.specs[0]))
	return pair(C.vkx_create_pipeline(d.p, &c))
}

func newSetWrite(set, buffer uint64, off, size int64, binding int) setWrite {
	return setWrite{set: C.uint64_t(set), buffer: C.uint64_t(buffer), offset: C.uint64_t(off), _range: C.uint64_t(size),
		binding: C.uint32_t(binding)}
}

func (d shimDevice) updateSets(w []setWrite) {
	if len(w) > 0 {
		C.vkx_update_sets(d.p, &w[0], C.uint32_t(len(w)))
	}
}

// Object types of vkSetDebugUtilsObjectNameEXT.
const (
	objectBuffer   = 9
	objectPipeline = 19
)

func (d shimDevice) name(objectType uint32, handle uint64, name string) {
	s := C.CString(name)
	C.vkx_name(d.p, C.uint32_t(objectType), C.uint64_t(handle), s)
	C.free(unsafe.Pointer(s))
}

// cmdBarrier records a full barrier among dispatches, copies, fills and indirect reads; cmdHostBarrier makes what was
// written visible to the host.
func (d shimDevice) cmdBarrier(cb uint64)     { C.vkx_cmd_barrier(d.p, ptr(cb)) }
func (d shimDevice) cmdHostBarrier(cb uint64) { C.vkx_cmd_host_barrier(d.p, ptr(cb)) }

// cmdMemoryBarrier is cmdBarrier without indirect reads after it.
func (d shimDevice) cmdMemoryBarrier(cb uint64) { C.vkx_cmd_memory_barrier(d.p, ptr(cb)) }

// cmdGateBarrier is cmdBarrier, and makes visible what the host wrote before it opened the gate that the batch waited
// at.
func (d shimDevice) cmdGateBarrier(cb uint64) { C.vkx_cmd_gate_barrier(d.p, ptr(cb)) }

func (d shimDevice) cmdCopy(cb, src, dst uint64, srcOff, dstOff, size int64) {
	C.vkx_cmd_copy(d.p, ptr(cb), C.uint64_t(src), C.uint64_t(dst), C.uint64_t(srcOff), C.uint64_t(dstOff),
		C.uint64_t(size))
}

func (d shimDevice) cmdLabel(cb uint64, name string) {
	s := C.CString(name)
	C.vkx_cmd_label(d.p, ptr(cb), s)
	C.free(unsafe.Pointer(s))
}

func (d shimDevice) cmdEndLabel(cb uint64) { C.vkx_cmd_end_label(d.p, ptr(cb)) }

// recordCopy re-records cb: one copy between barriers. No Go allocation.
func (d shimDevice) recordCopy(cb, src, dst uint64, srcOff, dstOff, size int64) Result {
	return Result(C.vkx_record_copy(d.p, ptr(cb), C.uint64_t(src), C.uint64_t(dst), C.uint64_t(srcOff),
		C.uint64_t(dstOff), C.uint64_t(size)))
}

// maxBatches is the most submissions that one submit call takes.
const maxBatches = 64

// submit makes one submission per element of b.counts, of so many of b.cbs each, in one call; they set the timeline to
// first, first+1 and so on. It returns the last of these values. No Go allocation.
func (d shimDevice) submit(queue uint64, b *batches, timeline, first uint64) (uint64, Result) {
	return pair(C.vkx_submit(d.p, ptr(queue), (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(b.cbs))),
		(*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(b.counts))),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(b.gates))),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(b.until))), C.uint32_t(len(b.counts)),
		C.uint64_t(timeline), C.uint64_t(first)))
}

func (d shimDevice) signal(timeline, value uint64) Result {
	return Result(C.vkx_signal(d.p, C.uint64_t(timeline), C.uint64_t(value)))
}

// wait waits until the timeline has reached value.
func (d shimDevice) wait(timeline, value, timeoutNs uint64) Result {
	return Result(C.vkx_wait(d.p, C.uint64_t(timeline), C.uint64_t(value), C.uint64_t(timeoutNs)))
}

func (d shimDevice) counter(timeline uint64) (uint64, Result) {
	return pair(C.vkx_counter(d.p, C.uint64_t(timeline)))
}

// timestamps reads the first len(out) queries of a pool.
func (d shimDevice) timestamps(pool uint64, out []uint64) Result {
	return Result(C.vkx_timestamps(d.p, C.uint64_t(pool), C.uint32_t(len(out)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(out)))))
}

// canImport reports whether buffers of this package can lie in imported memory of the host.
func (s shimInstance) canImport(pd uint64) bool {
	return C.vkx_can_import(s.p, ptr(pd), C.uint32_t(bufferUsage)) != 0
}

// takeHost returns size bytes of zeros of the host, in whole pages that begin at a multiple of align, or nil.
func takeHost(size, align int64) unsafe.Pointer {
	return C.vkx_take_host(C.size_t(size), C.size_t(align))
}

func giveHost(p unsafe.Pointer, size int64) { C.vkx_give_host(p, C.size_t(size)) }

// hostTypes returns the memory types as which the memory at p can be imported.
func (d shimDevice) hostTypes(p unsafe.Pointer) (uint32, Result) {
	n, r := pair(C.vkx_host_types(d.p, p))
	return uint32(n), r
}

func (d shimDevice) createHostBuffer(size int64) (uint64, Result) {
	return pair(C.vkx_create_host_buffer(d.p, C.uint64_t(size), C.uint32_t(bufferUsage)))
}

func (d shimDevice) importHost(p unsafe.Pointer, size int64, memoryType uint32) (uint64, Result) {
	return pair(C.vkx_import_host(d.p, p, C.uint64_t(size), C.uint32_t(memoryType)))
}
