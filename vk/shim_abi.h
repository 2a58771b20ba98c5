// Vulkan's own structures, as far as the shim fills them in. Layouts follow the
// C ABI of a 64-bit machine; non-dispatchable handles are uint64_t.
#ifndef VKSPLAT_VKX_ABI_H
#define VKSPLAT_VKX_ABI_H
#include <stdint.h>

enum {
    ST_FEATURES2 = 1000059000, ST_PROPERTIES2 = 1000059001, ST_MEMORY_PROPERTIES2 = 1000059006,
    ST_V11_FEATURES = 49, ST_V11_PROPERTIES = 50, ST_V12_FEATURES = 51, ST_V12_PROPERTIES = 52,
    ST_SUBGROUP_CONTROL_PROPERTIES = 1000225000, ST_REQUIRED_SUBGROUP_SIZE = 1000225001,
    ST_SUBGROUP_CONTROL_FEATURES = 1000225002, ST_ATOMIC_FLOAT = 1000260000,
    ST_MEMORY_BUDGET = 1000237000, ST_EXECUTABLE_FEATURES = 1000269000, ST_M4_PROPERTIES = 1000413001,
    ST_SEMAPHORE_TYPE = 1000207002, ST_TIMELINE_SUBMIT = 1000207003, ST_SEMAPHORE_WAIT = 1000207004,
    ST_OBJECT_NAME = 1000128000, ST_LABEL = 1000128002, ST_MESSENGER = 1000128004,
    ST_VALIDATION_FEATURES = 1000247000, ST_SEMAPHORE_SIGNAL = 1000207005,
    ST_EXTERNAL_BUFFER_INFO = 1000071002, ST_EXTERNAL_BUFFER_PROPERTIES = 1000071003,
    ST_EXTERNAL_BUFFER = 1000072000, ST_IMPORT_HOST = 1000178000, ST_HOST_POINTER = 1000178001,
    ST_MEMORY_HOST_PROPERTIES = 1000178002,
    ST_PCI_BUS_PROPERTIES = 1000212000, ST_INTEGER_DOT_FEATURES = 1000280000, ST_INTEGER_DOT_PROPERTIES = 1000280001,
    HOST_ALLOCATION = 0x80, // of VkExternalMemoryHandleTypeFlagBits
    FEATURE_INT64 = 40, FEATURE_INT16 = 41, // index within VkPhysicalDeviceFeatures
};

typedef struct { char name[256]; uint32_t spec_version, version; char description[256]; } LayerProperties;
typedef struct { char name[256]; uint32_t version; } ExtensionProperties;
typedef struct { int32_t sType; const void *pNext; const char *name; uint32_t version; const char *engine; uint32_t engine_version, api; } ApplicationInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; const ApplicationInfo *app; uint32_t n_layers; const char *const *layers; uint32_t n_exts; const char *const *exts; } InstanceCreateInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t n_enabled; const int32_t *enabled; uint32_t n_disabled; const int32_t *disabled; } ValidationFeatures;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; const char *id_name; int32_t id; const char *text; } MessengerCallbackData; // more follows
typedef struct { int32_t sType; const void *pNext; uint32_t flags, severity, types; uint32_t (*callback)(uint32_t, uint32_t, const void *, void *); void *user; } MessengerCreateInfo;
typedef struct { int32_t sType; const void *pNext; int32_t type; uint64_t handle; const char *name; } ObjectName;
typedef struct { int32_t sType; const void *pNext; const char *name; float color[4]; } Label;

// VkPhysicalDeviceProperties is 824 bytes; the binding reads it, the shim only makes room for it.
typedef struct { int32_t sType; void *pNext; uint64_t properties[824 / 8]; } Properties2;
typedef struct { int32_t sType; void *pNext; uint32_t b[55]; } Features2;
typedef struct { int32_t sType; void *pNext; uint8_t device_uuid[16], driver_uuid[16], luid[8]; uint32_t node_mask, luid_valid, subgroup_size, subgroup_stages, subgroup_ops, quad_all, point_clipping, max_views, max_view_index, protected_no_fault, max_set_descriptors; uint64_t max_allocation; } Vulkan11Properties;
typedef struct { int32_t sType; void *pNext; int32_t driver_id; char driver_name[256], driver_info[256]; uint8_t conformance[4]; uint32_t rest[46]; uint64_t max_timeline_difference; uint32_t color_sample_counts; } Vulkan12Properties;
typedef struct { int32_t sType; void *pNext; uint32_t storageBuffer16BitAccess, rest[11]; } Vulkan11Features;
typedef struct {
    int32_t sType;
    void *pNext;
    uint32_t samplerMirrorClampToEdge, drawIndirectCount, storageBuffer8BitAccess, uniform8, push8;
    uint32_t shaderBufferInt64Atomics, shaderSharedInt64Atomics, shaderFloat16, shaderInt8;
    uint32_t descriptorIndexing[21]; // descriptorIndexing to runtimeDescriptorArray
    uint32_t samplerFilterMinmax, scalarBlockLayout, imagelessFramebuffer, uniformBufferStandardLayout;
    uint32_t shaderSubgroupExtendedTypes, separateDepthStencilLayouts, hostQueryReset, timelineSemaphore;
    uint32_t bufferDeviceAddress[3], vulkanMemoryModel[3];
    uint32_t viewportIndex, viewportLayer, broadcastDynamicId;
} Vulkan12Features;
typedef struct { int32_t sType; void *pNext; uint32_t min_size, max_size, max_workgroup, required_stages; } SubgroupControlProperties;
typedef struct { int32_t sType; void *pNext; uint32_t control, full; } SubgroupControlFeatures;
typedef struct { int32_t sType; void *pNext; uint32_t buffer_f32, buffer_f32_add, buffer_f64, buffer_f64_add, shared_f32, shared_f32_add, rest[6]; } AtomicFloatFeatures;
typedef struct { int32_t sType; void *pNext; uint32_t info; } ExecutableFeatures;
typedef struct { int32_t sType; void *pNext; uint32_t dot; } IntegerDotFeatures;
typedef struct { int32_t sType; void *pNext; uint32_t bytes[3], packed_unsigned, rest[26]; } IntegerDotProperties;
typedef struct { int32_t sType; void *pNext; uint64_t max_buffer; } Maintenance4Properties;
typedef struct { int32_t sType; void *pNext; uint64_t budget[16], usage[16]; } MemoryBudget;
typedef struct { int32_t sType; void *pNext; uint64_t min_align; } MemoryHostProperties;
typedef struct { int32_t sType; void *pNext; uint32_t domain, bus, device, function; } PCIBusProperties;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, usage, handle_type; } ExternalBufferInfo;
typedef struct { int32_t sType; void *pNext; uint32_t features, from_imported, compatible; } ExternalBufferProperties;
typedef struct { int32_t sType; void *pNext; uint32_t types; } HostPointerProperties;
typedef struct { int32_t sType; void *pNext; uint32_t n_types; struct { uint32_t flags, heap; } types[32]; uint32_t n_heaps; struct { uint64_t size; uint32_t flags; } heaps[16]; } MemoryProperties2;
typedef struct { uint32_t flags, count, timestamp_bits, granularity[3]; } FamilyProperties;

typedef struct { int32_t sType; const void *pNext; uint32_t flags, family, count; const float *priorities; } QueueCreateInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, n_queues; const QueueCreateInfo *queues; uint32_t n_layers; const char *const *layers; uint32_t n_exts; const char *const *exts; const void *features; } DeviceCreateInfo;
typedef struct { int32_t sType; const void *pNext; int32_t type; uint64_t initial; } SemaphoreType;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; } SemaphoreCreateInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, n; const uint64_t *semaphores, *values; } SemaphoreWait;
typedef struct { int32_t sType; const void *pNext; uint64_t semaphore, value; } SemaphoreSignal;
typedef struct { int32_t sType; const void *pNext; uint32_t n_wait; const uint64_t *wait; uint32_t n_signal; const uint64_t *signal; } TimelineSubmit;
typedef struct { int32_t sType; const void *pNext; uint32_t handle_types; } ExternalBuffer;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; uint64_t size; uint32_t usage; int32_t sharing; uint32_t n_families; const uint32_t *families; } BufferCreateInfo;
typedef struct { int32_t sType; const void *pNext; int32_t handle_type; void *p; } ImportHost;
typedef struct { int32_t sType; const void *pNext; uint64_t size; uint32_t type; } MemoryAllocateInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t n_wait; const uint64_t *wait; const uint32_t *wait_stages; uint32_t n_cbs; const uint64_t *cbs; uint32_t n_signal; const uint64_t *signal; } SubmitInfo;
typedef struct { uint32_t binding, type, count, stages; const void *samplers; } SetLayoutBinding;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, n; const SetLayoutBinding *bindings; } SetLayoutCreateInfo;
typedef struct { uint32_t stages, offset, size; } PushRange;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, n_sets; const uint64_t *sets; uint32_t n_ranges; const PushRange *ranges; } PipelineLayoutCreateInfo;
typedef struct { uint32_t type, count; } PoolSize;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, max_sets, n; const PoolSize *sizes; } DescriptorPoolCreateInfo;
typedef struct { uint32_t id, offset; size_t size; } SpecEntry;
typedef struct { uint32_t n; const SpecEntry *entries; size_t size; const void *data; } SpecInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t flags, stage; uint64_t module; const char *name; const SpecInfo *spec; } StageCreateInfo;
typedef struct { int32_t sType; const void *pNext; uint32_t size; } RequiredSubgroupSize;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; StageCreateInfo stage; uint64_t layout, base; int32_t base_index; } ComputePipelineCreateInfo;
typedef struct { uint64_t buffer, offset, range; } BufferInfo;
typedef struct { int32_t sType; const void *pNext; uint64_t set; uint32_t binding, element, count, type; const void *image; const BufferInfo *buffer; const void *texel; } WriteSet;
typedef struct { int32_t sType; const void *pNext; uint32_t src, dst; } MemoryBarrier;
typedef struct { uint64_t src, dst, size; } BufferCopy;
typedef struct { int32_t sType; const void *pNext; uint32_t flags; const void *inheritance; } BeginInfo;
#endif
