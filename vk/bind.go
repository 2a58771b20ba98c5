package vk

import (
	"runtime"
	"sync"
	"unsafe"
)

// This file is all that uses the binding: the plain Vulkan 1.0 calls that take no array of structures (the bindings
// free such arrays by finalizers that can run during the call; the shim makes those calls). Handles travel as 64-bit
// numbers outside of it.

// as reinterprets a handle's bits as the binding's type, raw the other way round.
func as[H any](bits uint64) H     { return *(*H)(unsafe.Pointer(&bits)) }
func raw[H any](h H) uint64       { return *(*uint64)(unsafe.Pointer(&h)) }
func ptr(h uint64) unsafe.Pointer { return as[unsafe.Pointer](h) }

// bindMu guards the binding's table of function pointers, which is global. Every instance fills it with the same entry
// points of the one loader.
var (
	bindMu      sync.Mutex
	boundLoader unsafe.Pointer // whose entry points the table has
)

// bindLoader makes the table that of a loader, once: the bindings empty it first, and whoever works on a device of an
// earlier instance would call into nothing.
func bindLoader(procAddr unsafe.Pointer) error {
	bindMu.Lock()
	defer bindMu.Unlock()
	if procAddr == boundLoader {
		return nil
	}
	callSetGetInstanceProcAddr(procAddr)
	if err := callInit(); err != nil {
		return err
	}
	boundLoader = procAddr
	return nil
}

func bindInstance(instance uint64) error {
	bindMu.Lock()
	defer bindMu.Unlock()
	return callInitInstance(as[apiInstance](instance))
}

func enumerateDevices(instance uint64) ([]uint64, Result) {
	in := as[apiInstance](instance)
	var n uint32
	if r := Result(callEnumeratePhysicalDevices(in, &n, nil)); r < 0 || n == 0 {
		return nil, r
	}
	list := make([]apiPhysicalDevice, n)
	r := Result(callEnumeratePhysicalDevices(in, &n, list))
	if r < 0 {
		return nil, r
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = raw(list[i])
	}
	return out, r
}

// coreProperties are the Vulkan 1.0 properties that matter here.
type coreProperties struct {
	name                    string
	api, driver, vendor, id uint32
	kind                    DeviceType
	cacheUUID               [16]byte
	limits                  Limits // the 1.0 part of it
	maxSetStorageBuffers    uint32
}

func readProperties(pd uint64) coreProperties {
	var p apiPhysicalDeviceProperties
	callGetPhysicalDeviceProperties(as[apiPhysicalDevice](pd), &p)
	p.Deref()
	p.Limits.Deref()
	l := p.Limits
	c := coreProperties{
		name: cString(p.DeviceName[:]), api: p.ApiVersion, driver: p.DriverVersion, vendor: p.VendorID, id: p.DeviceID,
		kind: DeviceType(p.DeviceType), cacheUUID: p.PipelineCacheUUID,
		maxSetStorageBuffers: l.MaxDescriptorSetStorageBuffers,
		limits: Limits{
			MaxStorageBufferRange:               int64(l.MaxStorageBufferRange),
			MaxComputeSharedMemorySize:          l.MaxComputeSharedMemorySize,
			MaxComputeWorkGroupInvocations:      l.MaxComputeWorkGroupInvocations,
			MaxComputeWorkGroupSize:             l.MaxComputeWorkGroupSize,
			MaxComputeWorkGroupCount:            l.MaxComputeWorkGroupCount,
			MaxPerStageDescriptorStorageBuffers: l.MaxPerStageDescriptorStorageBuffers,
			MaxPushConstantsSize:                l.MaxPushConstantsSize,
			MinStorageBufferOffsetAlignment:     int64(l.MinStorageBufferOffsetAlignment),
			TimestampPeriod:                     float64(l.TimestampPeriod),
		},
	}
	p.Free()
	return c
}

func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

func getQueue(dev uint64, family uint32) uint64 {
	var q apiQueue
	callGetDeviceQueue(as[apiDevice](dev), family, 0, &q)
	return raw(q)
}

func waitDeviceIdle(dev uint64) Result { return Result(callDeviceWaitIdle(as[apiDevice](dev))) }

// bufferUsage is the usage flags of every buffer.
const bufferUsage = apiBufferUsageStorageBufferBit | apiBufferUsageTransferSrcBit | apiBufferUsageTransferDstBit |
	apiBufferUsageIndirectBufferBit

func createBuffer(dev uint64, size int64) (uint64, Result) {
	info := apiBufferCreateInfo{SType: apiStructureTypeBufferCreateInfo, Size: apiDeviceSize(size),
		Usage: apiBufferUsageFlags(bufferUsage)}
	var b apiBuffer
	r := Result(callCreateBuffer(as[apiDevice](dev), &info, nil, &b))
	info.Free()
	return raw(b), r
}

func destroyBuffer(dev, buffer uint64) {
	callDestroyBuffer(as[apiDevice](dev), as[apiBuffer](buffer), nil)
}

// bufferRequirements returns the bytes of memory that a buffer needs and the set of memory types that suit it.
func bufferRequirements(dev, buffer uint64) (size int64, types uint32) {
	var m apiMemoryRequirements
	callGetBufferMemoryRequirements(as[apiDevice](dev), as[apiBuffer](buffer), &m)
	m.Deref()
	size, types = int64(m.Size), m.MemoryTypeBits
	m.Free()
	return size, types
}

func allocateMemory(dev uint64, size int64, memoryType uint32) (uint64, Result) {
	info := apiMemoryAllocateInfo{SType: apiStructureTypeMemoryAllocateInfo, AllocationSize: apiDeviceSize(size),
		MemoryTypeIndex: memoryType}
	var m apiDeviceMemory
	r := Result(callAllocateMemory(as[apiDevice](dev), &info, nil, &m))
	info.Free()
	return raw(m), r
}

func freeMemory(dev, memory uint64) {
	callFreeMemory(as[apiDevice](dev), as[apiDeviceMemory](memory), nil)
}

func bindBuffer(dev, buffer, memory uint64) Result {
	return Result(callBindBufferMemory(as[apiDevice](dev), as[apiBuffer](buffer), as[apiDeviceMemory](memory), 0))
}

func mapMemory(dev, memory uint64, size int64) (unsafe.Pointer, Result) {
	var p unsafe.Pointer
	r := Result(callMapMemory(as[apiDevice](dev), as[apiDeviceMemory](memory), 0, apiDeviceSize(size), 0, &p))
	return p, r
}

func createShader(dev uint64, words []uint32) (uint64, Result) {
	info := apiShaderModuleCreateInfo{SType: apiStructureTypeShaderModuleCreateInfo, CodeSize: sizeT(4 * len(words)),
		PCode: words}
	var m apiShaderModule
	r := Result(callCreateShaderModule(as[apiDevice](dev), &info, nil, &m))
	runtime.KeepAlive(words)
	info.Free()
	return raw(m), r
}

func destroyShader(dev, module uint64) {
	callDestroyShaderModule(as[apiDevice](dev), as[apiShaderModule](module), nil)
}

func destroyLayouts(dev, set, layout uint64) {
	callDestroyPipelineLayout(as[apiDevice](dev), as[apiPipelineLayout](layout), nil)
	callDestroyDescriptorSetLayout(as[apiDevice](dev), as[apiDescriptorSetLayout](set), nil)
}

func destroyPipeline(dev, pipeline uint64) {
	callDestroyPipeline(as[apiDevice](dev), as[apiPipeline](pipeline), nil)
}

func destroyDescriptorPool(dev, pool uint64) {
	callDestroyDescriptorPool(as[apiDevice](dev), as[apiDescriptorPool](pool), nil)
}

// allocateSet takes one descriptor set from pool.
func allocateSet(dev, pool, layout uint64) (uint64, Result) {
	layouts := []apiDescriptorSetLayout{as[apiDescriptorSetLayout](layout)}
	info := apiDescriptorSetAllocateInfo{SType: apiStructureTypeDescriptorSetAllocateInfo,
		DescriptorPool:     as[apiDescriptorPool](pool),
		DescriptorSetCount: 1, PSetLayouts: layouts}
	var set apiDescriptorSet
	r := Result(callAllocateDescriptorSets(as[apiDevice](dev), &info, &set))
	runtime.KeepAlive(layouts)
	info.Free()
	return raw(set), r
}

// createCommandBuffers returns a pool with n command buffers; they live as long as the pool.
func createCommandBuffers(dev uint64, family uint32, n int) (pool uint64, cbs []uint64, call string, r Result) {
	info := apiCommandPoolCreateInfo{SType: apiStructureTypeCommandPoolCreateInfo, QueueFamilyIndex: family,
		Flags: apiCommandPoolCreateFlags(apiCommandPoolCreateResetCommandBufferBit)}
	var p apiCommandPool
	r = Result(callCreateCommandPool(as[apiDevice](dev), &info, nil, &p))
	info.Free()
	if r < 0 {
		return 0, nil, "vkCreateCommandPool", r
	}
	list := make([]apiCommandBuffer, n)
	alloc := apiCommandBufferAllocateInfo{SType: apiStructureTypeCommandBufferAllocateInfo, CommandPool: p,
		Level:              apiCommandBufferLevelPrimary,
		CommandBufferCount: uint32(n)}
	r = Result(callAllocateCommandBuffers(as[apiDevice](dev), &alloc, list))
	alloc.Free()
	if r < 0 {
		destroyCommandPool(dev, raw(p))
		return 0, nil, "vkAllocateCommandBuffers", r
	}
	for _, cb := range list {
		cbs = append(cbs, raw(cb))
	}
	return raw(p), cbs, "", r
}

func destroyCommandPool(dev, pool uint64) {
	callDestroyCommandPool(as[apiDevice](dev), as[apiCommandPool](pool), nil)
}

func beginCommands(cb uint64) Result {
	info := apiCommandBufferBeginInfo{SType: apiStructureTypeCommandBufferBeginInfo}
	r := Result(callBeginCommandBuffer(as[apiCommandBuffer](cb), &info))
	info.Free()
	return r
}

func endCommands(cb uint64) Result { return Result(callEndCommandBuffer(as[apiCommandBuffer](cb))) }

func cmdBind(cb, pipeline, layout, set uint64) {
	c := as[apiCommandBuffer](cb)
	callCmdBindPipeline(c, apiPipelineBindPointCompute, as[apiPipeline](pipeline))
	callCmdBindDescriptorSets(c, apiPipelineBindPointCompute, as[apiPipelineLayout](layout), 0, 1,
		[]apiDescriptorSet{as[apiDescriptorSet](set)}, 0, nil)
}

func cmdPush(cb, layout uint64, push []byte) {
	if len(push) > 0 {
		callCmdPushConstants(as[apiCommandBuffer](cb), as[apiPipelineLayout](layout),
			apiShaderStageFlags(apiShaderStageComputeBit), 0, uint32(len(push)),
			unsafe.Pointer(&push[0]))
	}
}

func cmdDispatch(cb uint64, x, y, z uint32) { callCmdDispatch(as[apiCommandBuffer](cb), x, y, z) }

func cmdDispatchIndirect(cb, buffer uint64, off int64) {
	callCmdDispatchIndirect(as[apiCommandBuffer](cb), as[apiBuffer](buffer), apiDeviceSize(off))
}

func cmdFill(cb, buffer uint64, off, size int64, value uint32) {
	callCmdFillBuffer(as[apiCommandBuffer](cb), as[apiBuffer](buffer), apiDeviceSize(off), apiDeviceSize(size), value)
}

func cmdResetQueries(cb, pool uint64, n int) {
	callCmdResetQueryPool(as[apiCommandBuffer](cb), as[apiQueryPool](pool), 0, uint32(n))
}

// cmdTimestamp writes the time at which all commands before it have completed.
func cmdTimestamp(cb, pool uint64, query int) {
	callCmdWriteTimestamp(as[apiCommandBuffer](cb), apiPipelineStageBottomOfPipeBit, as[apiQueryPool](pool),
		uint32(query))
}

func createQueryPool(dev uint64, n int) (uint64, Result) {
	info := apiQueryPoolCreateInfo{SType: apiStructureTypeQueryPoolCreateInfo, QueryType: apiQueryTypeTimestamp,
		QueryCount: uint32(n)}
	var q apiQueryPool
	r := Result(callCreateQueryPool(as[apiDevice](dev), &info, nil, &q))
	info.Free()
	return raw(q), r
}

func destroyQueryPool(dev, pool uint64) {
	callDestroyQueryPool(as[apiDevice](dev), as[apiQueryPool](pool), nil)
}

func destroySemaphore(dev, semaphore uint64) {
	callDestroySemaphore(as[apiDevice](dev), as[apiSemaphore](semaphore), nil)
}

func createPipelineCache(dev uint64, data []byte) (uint64, Result) {
	info := apiPipelineCacheCreateInfo{SType: apiStructureTypePipelineCacheCreateInfo,
		InitialDataSize: sizeT(len(data))}
	if len(data) > 0 {
		info.PInitialData = unsafe.Pointer(&data[0])
	}
	var c apiPipelineCache
	r := Result(callCreatePipelineCache(as[apiDevice](dev), &info, nil, &c))
	runtime.KeepAlive(data)
	info.Free()
	return raw(c), r
}

func pipelineCacheData(dev, cache uint64) ([]byte, Result) {
	d, c := as[apiDevice](dev), as[apiPipelineCache](cache)
	var n sizeT
	if r := Result(callGetPipelineCacheData(d, c, &n, nil)); r < 0 || n == 0 {
		return nil, r
	}
	data := make([]byte, n)
	r := Result(callGetPipelineCacheData(d, c, &n, unsafe.Pointer(&data[0])))
	return data[:min(int(n), len(data))], r
}

func destroyPipelineCache(dev, cache uint64) {
	callDestroyPipelineCache(as[apiDevice](dev), as[apiPipelineCache](cache), nil)
}
