// A small C layer over the Vulkan entry points that the Go bindings lack or
// cannot call safely: everything newer than Vulkan 1.0, everything that takes
// an array of structures, and the calls of the submission path.
// It needs no Vulkan header; shim.c declares the few structures it fills in.
#ifndef VKSPLAT_VKX_H
#define VKSPLAT_VKX_H
#include <stddef.h>
#include <stdint.h>

typedef struct vkx_inst vkx_inst; // an instance, its functions, its messages
typedef struct vkx_dev vkx_dev;   // a device and its functions

// What a physical device offers beyond the Vulkan 1.0 properties.
typedef struct {
    uint8_t device_uuid[16], driver_uuid[16];
    char driver_name[256], driver_info[256];
    uint64_t max_memory_allocation, max_buffer;
    uint32_t subgroup_size, subgroup_stages, subgroup_ops;
    uint32_t min_subgroup, max_subgroup, max_workgroup_subgroups, required_stages;
    uint32_t timeline, scalar_layout, host_query_reset, subgroup_control, full_subgroups;
    uint32_t float16, int8, int16, int64, storage16, storage8, int64_atomics;
    uint32_t f32_buffer_atomics, f32_buffer_add, f32_shared_add, executable_info, packed_dot, packed_dot_fast;
    uint64_t host_align; // of host memory to import
    uint32_t has_pci, pci[4]; // domain, bus, device, function
} vkx_caps;

// Which optional extensions a device lists; the caller looked them up.
typedef struct {
    uint32_t subgroup_control, atomic_float, memory_budget, maintenance4, executable_info;
    uint32_t memory_host, pci_bus, integer_dot;
} vkx_exts;

typedef struct {
    uint32_t n_types, n_heaps;
    uint32_t type_flags[32], type_heap[32];
    uint64_t heap_size[16], heap_budget[16], heap_usage[16];
    uint32_t heap_flags[16];
} vkx_memory;

typedef struct { uint32_t family, flags, count, timestamp_bits; } vkx_family;
typedef struct { int32_t result; uint64_t value; } vkx_u64;

// One storage buffer of a descriptor set.
typedef struct { uint64_t set, buffer, offset, range; uint32_t binding, pad; } vkx_write;

// One compute pipeline. entries holds n_specs pairs (constant id, value).
typedef struct {
    uint64_t module, layout, cache;
    const uint32_t *entries;
    uint32_t n_specs, required_size, full_subgroups;
} vkx_pipeline;

void *vkx_load(const char *path, char *why, size_t why_size);
uint32_t vkx_api_version(void *gipa);
int32_t vkx_has_layer(void *gipa, const char *name);
vkx_inst *vkx_create_instance(void *gipa, uint32_t api, int32_t validate, int32_t debug_utils,
                              int32_t *result, const char **call);
void *vkx_instance_handle(vkx_inst *in);
void vkx_free_instance(vkx_inst *in);
int32_t vkx_next_message(vkx_inst *in, char *out, size_t size);
uint32_t vkx_dropped_messages(vkx_inst *in);

int32_t vkx_device_extensions(vkx_inst *in, void *pd, char (**names)[256], uint32_t *n);
void vkx_query(vkx_inst *in, void *pd, const vkx_exts *have, vkx_caps *out);
void vkx_query_memory(vkx_inst *in, void *pd, int32_t budget, vkx_memory *out);
uint32_t vkx_families(vkx_inst *in, void *pd, vkx_family *out, uint32_t max);
int32_t vkx_can_import(vkx_inst *in, void *pd, uint32_t usage);

vkx_dev *vkx_create_device(vkx_inst *in, void *pd, uint32_t family, const vkx_caps *want,
                           const vkx_exts *exts, int32_t *result);
void *vkx_device_handle(vkx_dev *d);
void vkx_free_device(vkx_dev *d);

vkx_u64 vkx_create_timeline(vkx_dev *d);
vkx_u64 vkx_create_set_layout(vkx_dev *d, uint32_t n);
vkx_u64 vkx_create_pipeline_layout(vkx_dev *d, uint64_t set_layout, uint32_t push_size);
vkx_u64 vkx_create_descriptor_pool(vkx_dev *d, uint32_t sets, uint32_t buffers);
vkx_u64 vkx_create_pipeline(vkx_dev *d, const vkx_pipeline *p);
void vkx_update_sets(vkx_dev *d, const vkx_write *w, uint32_t n);
void vkx_name(vkx_dev *d, uint32_t type, uint64_t handle, const char *name);

void vkx_cmd_barrier(vkx_dev *d, void *cb);
void vkx_cmd_memory_barrier(vkx_dev *d, void *cb);
void vkx_cmd_host_barrier(vkx_dev *d, void *cb);
void vkx_cmd_gate_barrier(vkx_dev *d, void *cb);
void vkx_cmd_copy(vkx_dev *d, void *cb, uint64_t src, uint64_t dst, uint64_t src_off,
                  uint64_t dst_off, uint64_t size);
void vkx_cmd_label(vkx_dev *d, void *cb, const char *name);
void vkx_cmd_end_label(vkx_dev *d, void *cb);
int32_t vkx_record_copy(vkx_dev *d, void *cb, uint64_t src, uint64_t dst, uint64_t src_off,
                        uint64_t dst_off, uint64_t size);

vkx_u64 vkx_submit(vkx_dev *d, void *queue, const uint64_t *cbs, const uint32_t *counts,
                   const uint64_t *gates, const uint64_t *until, uint32_t n,
                   uint64_t timeline, uint64_t first);
int32_t vkx_signal(vkx_dev *d, uint64_t timeline, uint64_t value);
int32_t vkx_wait(vkx_dev *d, uint64_t timeline, uint64_t value, uint64_t timeout_ns);
vkx_u64 vkx_counter(vkx_dev *d, uint64_t timeline);
int32_t vkx_timestamps(vkx_dev *d, uint64_t pool, uint32_t n, uint64_t *out);

void *vkx_take_host(size_t size, size_t align);
void vkx_give_host(void *p, size_t size);
vkx_u64 vkx_host_types(vkx_dev *d, void *p);
vkx_u64 vkx_create_host_buffer(vkx_dev *d, uint64_t size, uint32_t usage);
vkx_u64 vkx_import_host(vkx_dev *d, void *p, uint64_t size, uint32_t type);
#endif
