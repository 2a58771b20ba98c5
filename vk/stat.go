package vk

/*
#include "stat.h"
*/
import "C"

import (
	"encoding/binary"
	"math"
	"runtime"
	"unsafe"
)

// Stat is one number that the driver reports about a compiled kernel, under the driver's own name: registers, spills,
// instructions and so on.
type Stat struct {
	Name  string
	Value float64
}

type KernelStats struct {
	SubgroupSize uint32 // of the code that the driver made
	Workgroup    [3]uint32
	Stats        []Stat // in the driver's order
}

// Compiler compiles kernels for a device and runs none. It takes no memory, queue or semaphore, so that drivers work
// that have no hardware behind them. It belongs to one goroutine at a time.
type Compiler struct{ d *Device }

// NewCompiler opens the device that info describes for compiling only. It fails with ErrMissingFeature when the device
// does not reach the floor or its driver does not tell statistics (Features.ExecutableInfo).
func (in *Instance) NewCompiler(info DeviceInfo) (*Compiler, error) {
	if !info.Features.ExecutableInfo {
		info.Missing = append(info.Missing[:len(info.Missing):len(info.Missing)], "pipelineExecutableInfo")
	}
	if info.handle == 0 || len(info.Missing) > 0 {
		return nil, info.refuse()
	}
	want, exts := info.Features.enable()
	shim, r := in.shim.createDevice(info.handle, info.family, want, exts)
	if err := failed("vkCreateDevice", info.Name, r); err != nil {
		return nil, err
	}
	in.open.Add(1)
	d := &Device{in: in, info: info, shim: shim, h: shim.handle()}
	d.kernels = newKernels(d)
	return &Compiler{d}, nil
}

func (c *Compiler) Close() {
	if c.d.h == 0 {
		return
	}
	c.d.kernels.close()
	c.d.shim.free()
	c.d.h = 0
	c.d.in.open.Add(-1)
}

// Device returns the device that lists are recorded for, whose forms Compile compiles. Programs cannot be built for it.
func (c *Compiler) Device() *Device { return c.d }

// Compile compiles k for the specialization constants spec (in the order of k.Specs) exactly as a pass would be, and
// returns what the driver tells.
func (c *Compiler) Compile(k *Kernel, spec []uint32) (KernelStats, error) {
	d := c.d
	if len(spec) != len(k.Specs) {
		return KernelStats{}, invalid("compile", k.Name, "%d specialization constants given, it has %d", len(spec),
			len(k.Specs))
	}
	s, err := d.kernels.shape(k, spec)
	if err != nil {
		return KernelStats{}, err
	}
	lay, err := d.kernels.layout(k)
	if err != nil {
		return KernelStats{}, err
	}
	words := make([]uint32, len(k.SPIRV)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(k.SPIRV[4*i:])
	}
	if len(words) == 0 {
		return KernelStats{}, invalid("compile", k.Name, "it has no SPIR-V")
	}
	module, r := createShader(d.h, words)
	if r < 0 {
		return KernelStats{}, d.check("vkCreateShaderModule", k.Name, r)
	}
	defer destroyShader(d.h, module)
	info := pipelineInfo{module: module, layout: lay.pipeline, requiredSize: s.required, fullSubgroups: s.fullSubgroups}
	for i, c := range k.Specs {
		info.specs = append(info.specs, c.ID, s.spec[i])
	}
	raw, call, r := readStats(d, info)
	if r < 0 {
		return KernelStats{}, d.check(call, k.Name, r)
	}
	out := KernelStats{SubgroupSize: uint32(raw.subgroup_size), Workgroup: s.local}
	for _, st := range raw.stats[:raw.n] {
		out.Stats = append(out.Stats, Stat{cText(st.name[:]), statValue(int32(st.format), uint64(st.bits))})
	}
	return out, nil
}

func readStats(d *Device, p pipelineInfo) (*C.vkx_stats, string, Result) {
	c := C.vkx_pipeline{module: C.uint64_t(p.module), layout: C.uint64_t(p.layout),
		n_specs:       C.uint32_t(len(p.specs) / 2),
		required_size: C.uint32_t(p.requiredSize), full_subgroups: cbool(p.fullSubgroups)}
	var pin runtime.Pinner
	defer pin.Unpin()
	if len(p.specs) > 0 {
		pin.Pin(&p.specs[0])
		c.entries = (*C.uint32_t)(unsafe.Pointer(&p.specs[0]))
	}
	out := new(C.vkx_stats)
	var call *C.char
	r := C.vkx_kernel_stats(d.in.shim.p, ptr(d.h), &c, out, &call)
	return out, C.GoString(call), Result(r)
}

// statValue turns a VkPipelineExecutableStatisticValueKHR into a number.
func statValue(format int32, bits uint64) float64 {
	switch format {
	case 0:
		return float64(uint32(bits))
	case 1:
		return float64(int64(bits))
	case 3:
		return math.Float64frombits(bits)
	}
	return float64(bits)
}
