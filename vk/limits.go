package vk

import "fmt"

// Limits are the sizes that a device sets. All of them are looked up, none is assumed. The JSON names are Vulkan's.
type Limits struct {
	// bytes that one binding may span
	MaxStorageBufferRange int64 `json:"maxStorageBufferRange"`
	// bytes of one vkAllocateMemory
	MaxMemoryAllocationSize int64 `json:"maxMemoryAllocationSize"`
	// bytes of one VkBuffer; MaxMemoryAllocationSize where the driver does not say
	MaxBufferSize              int64  `json:"maxBufferSize"`
	MaxComputeSharedMemorySize uint32 `json:"maxComputeSharedMemorySize"` // bytes per workgroup
	// invocations of a workgroup
	MaxComputeWorkGroupInvocations uint32    `json:"maxComputeWorkGroupInvocations"`
	MaxComputeWorkGroupSize        [3]uint32 `json:"maxComputeWorkGroupSize"` // likewise per dimension
	// workgroups of a dispatch per dimension
	MaxComputeWorkGroupCount [3]uint32 `json:"maxComputeWorkGroupCount"`
	// subgroups of a workgroup whose subgroup size was asked for; 0 if that cannot be
	MaxComputeWorkgroupSubgroups uint32 `json:"maxComputeWorkgroupSubgroups"`
	// storage buffers of one kernel
	MaxPerStageDescriptorStorageBuffers uint32 `json:"maxPerStageDescriptorStorageBuffers"`
	MaxPushConstantsSize                uint32 `json:"maxPushConstantsSize"` // bytes
	// every binding begins at a multiple of this
	MinStorageBufferOffsetAlignment int64 `json:"minStorageBufferOffsetAlignment"`
	// invocations of a subgroup, unless a kernel asks for another size; 64 where the driver's own size is 128 and 64
	// can be had: every kernel asks then
	SubgroupSize uint32 `json:"subgroupSize"`
	// smallest subgroup size that a kernel may ask for
	MinSubgroupSize uint32 `json:"minSubgroupSize"`
	MaxSubgroupSize uint32 `json:"maxSubgroupSize"` // largest one
	// bytes; host memory to import begins and ends at a multiple of it; 0 if none can be
	MinImportedHostPointerAlignment int64   `json:"minImportedHostPointerAlignment"`
	TimestampPeriod                 float64 `json:"timestampPeriod"` // nanoseconds per tick
	// bits of a timestamp that count; 0: the queue has no timestamps
	TimestampBits uint32 `json:"timestampValidBits"`
}

// Features are the abilities of a device. The first two groups belong to the floor that every device must reach (see
// DeviceInfo.Missing), the others are for faster variants. A device is opened with all that it has.
type Features struct {
	TimelineSemaphore bool `json:"timelineSemaphore"`
	ScalarBlockLayout bool `json:"scalarBlockLayout"`

	SubgroupBasic      bool `json:"subgroupBasic"` // these five in compute kernels
	SubgroupVote       bool `json:"subgroupVote"`
	SubgroupArithmetic bool `json:"subgroupArithmetic"`
	SubgroupBallot     bool `json:"subgroupBallot"`
	SubgroupShuffle    bool `json:"subgroupShuffle"`

	HostQueryReset      bool `json:"hostQueryReset"`
	SubgroupSizeControl bool `json:"subgroupSizeControl"` // a kernel may ask for a subgroup size
	// a kernel may insist that no subgroup is partly empty
	ComputeFullSubgroups bool `json:"computeFullSubgroups"`
	Float16              bool `json:"shaderFloat16"`                // half-precision arithmetic
	Int8                 bool `json:"shaderInt8"`                   // 8-bit integer arithmetic
	Int16                bool `json:"shaderInt16"`                  // 16-bit integer arithmetic
	Int64                bool `json:"shaderInt64"`                  // 64-bit integer arithmetic
	Storage8             bool `json:"storageBuffer8BitAccess"`      // 8-bit members of storage buffers
	Storage16            bool `json:"storageBuffer16BitAccess"`     // 16-bit members of storage buffers
	Int64Atomics         bool `json:"shaderBufferInt64Atomics"`     // 64-bit integer atomics on storage buffers
	Float32Atomics       bool `json:"shaderBufferFloat32Atomics"`   // float load, store and exchange on storage buffers
	Float32Add           bool `json:"shaderBufferFloat32AtomicAdd"` // float addition on storage buffers
	SharedFloat32Add     bool `json:"shaderSharedFloat32AtomicAdd"` // float addition in shared memory
	MemoryBudget         bool `json:"memoryBudget"`                 // the driver tells how much of each heap is free
	// the driver tells registers and spills of a compiled kernel
	ExecutableInfo bool `json:"pipelineExecutableInfo"`
	// buffers can lie in memory of the host that other devices use too
	ExternalMemoryHost bool `json:"externalMemoryHost"`
	PackedDot          bool `json:"shaderIntegerDotProduct"` // dot products of integers, four packed bytes among them
	// those of four unsigned bytes are faster than sums of products
	PackedDotFast bool `json:"integerDotProduct4x8BitPackedUnsignedAccelerated"`
}

const (
	floorInvocations = 256
	floorShared      = 16 << 10
	floorBuffers     = 16
	floorPush        = 128
	minSubgroup      = 4
	maxSubgroup      = 64
)

func limitsOf(core coreProperties, c deviceCaps, timestampBits uint32) Limits {
	l := core.limits
	l.MaxMemoryAllocationSize = clampInt64(uint64(c.max_memory_allocation))
	l.MaxBufferSize = clampInt64(uint64(c.max_buffer))
	if l.MaxBufferSize == 0 {
		l.MaxBufferSize = l.MaxMemoryAllocationSize
	}
	l.MaxPerStageDescriptorStorageBuffers = min(l.MaxPerStageDescriptorStorageBuffers, core.maxSetStorageBuffers)
	l.TimestampBits = timestampBits
	l.MinImportedHostPointerAlignment = clampInt64(uint64(c.host_align))
	if !(l.TimestampPeriod > 0 && l.TimestampPeriod < 1e9) {
		l.TimestampPeriod, l.TimestampBits = 0, 0
	}
	l.SubgroupSize = uint32(c.subgroup_size)
	l.MinSubgroupSize, l.MaxSubgroupSize = l.SubgroupSize, l.SubgroupSize
	if c.subgroup_control != 0 && c.required_stages&stageCompute != 0 {
		l.MinSubgroupSize, l.MaxSubgroupSize = uint32(c.min_subgroup), uint32(c.max_subgroup)
		l.MaxComputeWorkgroupSubgroups = uint32(c.max_workgroup_subgroups)
	}
	l.narrow()
	return l
}

// narrow sets a default subgroup size that kernels cannot use to the largest that they can: Adreno's may be 128.
func (l *Limits) narrow() {
	if l.MinSubgroupSize <= maxSubgroup {
		l.SubgroupSize = min(l.SubgroupSize, maxSubgroup)
	}
}

// clampInt64 brings sizes that drivers use for "no limit" into range.
func clampInt64(n uint64) int64 { return int64(min(n, 1<<62)) }

// Bits of Vulkan: the compute stage, the subgroup operations.
const (
	stageCompute = 0x20
	opBasic      = 1
	opVote       = 2
	opArithmetic = 4
	opBallot     = 8
	opShuffle    = 16
)

func featuresOf(c deviceCaps, e deviceExts) Features {
	op := func(bit uint32) bool { return c.subgroup_stages&stageCompute != 0 && uint32(c.subgroup_ops)&bit != 0 }
	return Features{
		TimelineSemaphore: c.timeline != 0, ScalarBlockLayout: c.scalar_layout != 0,
		SubgroupBasic: op(opBasic), SubgroupVote: op(opVote), SubgroupArithmetic: op(opArithmetic),
		SubgroupBallot:  op(opBallot),
		SubgroupShuffle: op(opShuffle),
		HostQueryReset:  c.host_query_reset != 0, SubgroupSizeControl: c.subgroup_control != 0 &&
			c.required_stages&stageCompute != 0,
		ComputeFullSubgroups: c.full_subgroups != 0,
		Float16:              c.float16 != 0, Int8: c.int8 != 0, Int16: c.int16 != 0, Int64: c.int64 != 0,
		Storage8: c.storage8 != 0, Storage16: c.storage16 != 0, Int64Atomics: c.int64_atomics != 0,
		Float32Atomics: c.f32_buffer_atomics != 0, Float32Add: c.f32_buffer_add != 0,
		SharedFloat32Add: c.f32_shared_add != 0,
		MemoryBudget:     e.memory_budget != 0, ExecutableInfo: c.executable_info != 0,
		ExternalMemoryHost: e.memory_host != 0,
		PackedDot:          c.packed_dot != 0, PackedDotFast: c.packed_dot_fast != 0,
	}
}

func (f Features) enable() (c deviceCaps, e deviceExts) {
	c.timeline, c.scalar_layout, c.host_query_reset = cbool(f.TimelineSemaphore), cbool(f.ScalarBlockLayout),
		cbool(f.HostQueryReset)
	c.subgroup_control, c.full_subgroups = cbool(f.SubgroupSizeControl), cbool(f.ComputeFullSubgroups)
	c.float16, c.int8, c.int16, c.int64 = cbool(f.Float16), cbool(f.Int8), cbool(f.Int16), cbool(f.Int64)
	c.storage8, c.storage16, c.int64_atomics = cbool(f.Storage8), cbool(f.Storage16), cbool(f.Int64Atomics)
	c.f32_buffer_atomics, c.f32_buffer_add, c.f32_shared_add = cbool(f.Float32Atomics), cbool(f.Float32Add),
		cbool(f.SharedFloat32Add)
	c.executable_info = cbool(f.ExecutableInfo)
	e.subgroup_control = cbool(f.SubgroupSizeControl || f.ComputeFullSubgroups)
	e.atomic_float = cbool(f.Float32Atomics || f.Float32Add || f.SharedFloat32Add)
	e.memory_budget, e.executable_info, e.memory_host = cbool(f.MemoryBudget), cbool(f.ExecutableInfo),
		cbool(f.ExternalMemoryHost)
	c.packed_dot, e.integer_dot = cbool(f.PackedDot), cbool(f.PackedDot)
	return c, e
}

// missing lists what a device lacks of the floor, in Vulkan's names.
func missing(api Version, l Limits, f Features) (list []string) {
	need := func(ok bool, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	need(api.AtLeast(1, 2), "Vulkan 1.2 (the device has %v)", api)
	need(f.TimelineSemaphore, "timelineSemaphore")
	need(f.ScalarBlockLayout, "scalarBlockLayout")
	need(f.SubgroupBasic, "basic subgroup operations in compute")
	need(f.SubgroupVote, "subgroup vote in compute")
	need(f.SubgroupArithmetic, "subgroup arithmetic in compute")
	need(f.SubgroupBallot, "subgroup ballot in compute")
	need(f.SubgroupShuffle, "subgroup shuffle in compute")
	need(l.SubgroupSize >= minSubgroup && l.SubgroupSize <= maxSubgroup,
		"a subgroup size of %d to %d (the device has %d)", minSubgroup, maxSubgroup, l.SubgroupSize)
	need(l.MaxComputeWorkGroupInvocations >= floorInvocations && l.MaxComputeWorkGroupSize[0] >= floorInvocations,
		"%d invocations per workgroup (the device has %d)", floorInvocations,
		min(l.MaxComputeWorkGroupInvocations, l.MaxComputeWorkGroupSize[0]))
	need(l.MaxComputeSharedMemorySize >= floorShared, "%d bytes of shared memory (the device has %d)", floorShared,
		l.MaxComputeSharedMemorySize)
	need(l.MaxPerStageDescriptorStorageBuffers >= floorBuffers, "%d storage buffers per stage (the device has %d)",
		floorBuffers, l.MaxPerStageDescriptorStorageBuffers)
	need(l.MaxPushConstantsSize >= floorPush, "%d bytes of push constants (the device has %d)", floorPush,
		l.MaxPushConstantsSize)
	return list
}
