// The device half of the shim: see shim.h.
#include "shim.h"

#include <stdlib.h>
#include <string.h>

#include "shim_abi.h"

int32_t vkx_new_device(vkx_inst *in, void *pd, const void *ci, void **out);
void *vkx_device_proc(vkx_inst *in, void *dev, const char *name);
int32_t vkx_validating(vkx_inst *in);

struct vkx_dev {
    void *handle;
    void (*destroy)(void *, const void *);
    int32_t (*create_semaphore)(void *, const void *, const void *, uint64_t *);
    int32_t (*create_set_layout)(void *, const void *, const void *, uint64_t *);
    int32_t (*create_pipeline_layout)(void *, const void *, const void *, uint64_t *);
    int32_t (*create_descriptor_pool)(void *, const void *, const void *, uint64_t *);
    int32_t (*create_pipelines)(void *, uint64_t, uint32_t, const void *, const void *, uint64_t *);
    void (*update_sets)(void *, uint32_t, const void *, uint32_t, const void *);
    void (*barrier)(void *, uint32_t, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, uint32_t, const void *);
    void (*copy)(void *, uint64_t, uint64_t, uint32_t, const void *);
    int32_t (*begin)(void *, const void *);
    int32_t (*end)(void *);
    int32_t (*submit)(void *, uint32_t, const void *, uint64_t);
    int32_t (*wait)(void *, const void *, uint64_t);
    int32_t (*counter)(void *, uint64_t, uint64_t *);
    int32_t (*signal)(void *, const void *);
    int32_t (*create_buffer)(void *, const void *, const void *, uint64_t *);
    int32_t (*allocate)(void *, const void *, const void *, uint64_t *);
    int32_t (*host_pointer)(void *, int32_t, const void *, void *); // NULL where memory of the host cannot be imported
    int32_t (*query_results)(void *, uint64_t, uint32_t, uint32_t, size_t, void *, uint64_t, uint32_t);
    int32_t (*name)(void *, const void *);       // debug utils, may be NULL
    void (*begin_label)(void *, const void *);   // likewise
    void (*end_label)(void *);
};

enum {
    STAGE_INDIRECT = 0x2, STAGE_COMPUTE = 0x800, STAGE_TRANSFER = 0x1000, STAGE_HOST = 0x4000, STAGE_ALL = 0x10000,
    ACCESS_INDIRECT = 0x1, ACCESS_SHADER_READ = 0x20, ACCESS_SHADER_WRITE = 0x40,
    ACCESS_TRANSFER_READ = 0x800, ACCESS_TRANSFER_WRITE = 0x1000, ACCESS_HOST_READ = 0x2000, ACCESS_HOST_WRITE = 0x4000,
    SHADER_COMPUTE = 0x20, STORAGE_BUFFER = 7,
};

static int load_device(vkx_dev *d, vkx_inst *in) {
#define GET(field, fn) d->field = vkx_device_proc(in, d->handle, fn)
    GET(destroy, "vkDestroyDevice");
    GET(create_semaphore, "vkCreateSemaphore");
    GET(create_set_layout, "vkCreateDescriptorSetLayout");
    GET(create_pipeline_layout, "vkCreatePipelineLayout");
    GET(create_descriptor_pool, "vkCreateDescriptorPool");
    GET(create_pipelines, "vkCreateComputePipelines");
    GET(update_sets, "vkUpdateDescriptorSets");
    GET(barrier, "vkCmdPipelineBarrier");
    GET(copy, "vkCmdCopyBuffer");
    GET(begin, "vkBeginCommandBuffer");
    GET(end, "vkEndCommandBuffer");
    GET(submit, "vkQueueSubmit");
    GET(wait, "vkWaitSemaphores");
    GET(counter, "vkGetSemaphoreCounterValue");
    GET(signal, "vkSignalSemaphore");
    GET(create_buffer, "vkCreateBuffer");
    GET(allocate, "vkAllocateMemory");
    GET(host_pointer, "vkGetMemoryHostPointerPropertiesEXT");
    GET(query_results, "vkGetQueryPoolResults");
    GET(name, "vkSetDebugUtilsObjectNameEXT");
    GET(begin_label, "vkCmdBeginDebugUtilsLabelEXT");
    GET(end_label, "vkCmdEndDebugUtilsLabelEXT");
#undef GET
    // The validation layer (1.3.239) keeps labels by command buffer and drops
    // those of one that ended on a thread of its own, without its lock: a label
    // at the same time corrupts the heap. Its messages do not need them.
    if (vkx_validating(in)) {
        d->begin_label = NULL;
        d->end_label = NULL;
    }
    return d->wait && d->counter && d->signal && d->submit && d->create_pipelines;
}

vkx_dev *vkx_create_device(vkx_inst *in, void *pd, uint32_t family, const vkx_caps *want,
                           const vkx_exts *exts, int32_t *result) {
    static const float priority = 1;
    QueueCreateInfo q = {.sType = 2, .family = family, .count = 1, .priorities = &priority};
    AtomicFloatFeatures af = {.sType = ST_ATOMIC_FLOAT, .buffer_f32 = want->f32_buffer_atomics,
                              .buffer_f32_add = want->f32_buffer_add, .shared_f32_add = want->f32_shared_add};
    SubgroupControlFeatures sf = {.sType = ST_SUBGROUP_CONTROL_FEATURES,
                                  .control = want->subgroup_control, .full = want->full_subgroups};
    ExecutableFeatures ef = {.sType = ST_EXECUTABLE_FEATURES, .info = want->executable_info};
    IntegerDotFeatures df = {.sType = ST_INTEGER_DOT_FEATURES, .dot = want->packed_dot};
    Vulkan12Features f12 = {.sType = ST_V12_FEATURES, .timelineSemaphore = want->timeline,
                            .scalarBlockLayout = want->scalar_layout, .hostQueryReset = want->host_query_reset,
                            .shaderFloat16 = want->float16, .shaderInt8 = want->int8,
                            .storageBuffer8BitAccess = want->storage8,
                            .shaderBufferInt64Atomics = want->int64_atomics};
    Vulkan11Features f11 = {.sType = ST_V11_FEATURES, .pNext = &f12, .storageBuffer16BitAccess = want->storage16};
    Features2 f2 = {.sType = ST_FEATURES2, .pNext = &f11};
    f2.b[FEATURE_INT16] = want->int16;
    f2.b[FEATURE_INT64] = want->int64;
    const char *names[8];
    uint32_t n = 0;
    if (exts->subgroup_control) {
        names[n++] = "VK_EXT_subgroup_size_control";
        sf.pNext = f2.pNext;
        f2.pNext = &sf;
    }
    if (exts->atomic_float) {
        names[n++] = "VK_EXT_shader_atomic_float";
        af.pNext = f2.pNext;
        f2.pNext = &af;
    }
    if (exts->executable_info) {
        names[n++] = "VK_KHR_pipeline_executable_properties";
        ef.pNext = f2.pNext;
        f2.pNext = &ef;
    }
    if (exts->integer_dot) {
        names[n++] = "VK_KHR_shader_integer_dot_product";
        df.pNext = f2.pNext;
        f2.pNext = &df;
    }
    if (exts->memory_budget) names[n++] = "VK_EXT_memory_budget";
    if (exts->memory_host) names[n++] = "VK_EXT_external_memory_host";
    DeviceCreateInfo ci = {.sType = 3, .pNext = &f2, .n_queues = 1, .queues = &q, .n_exts = n, .exts = names};
    vkx_dev *d = calloc(1, sizeof *d);
    *result = d ? vkx_new_device(in, pd, &ci, &d->handle) : -1;
    if (*result != 0) {
        free(d);
        return NULL;
    }
    if (!load_device(d, in)) {
        *result = -3;
        if (d->destroy) d->destroy(d->handle, NULL);
        free(d);
        return NULL;
    }
    return d;
}

void *vkx_device_handle(vkx_dev *d) { return d->handle; }

void vkx_free_device(vkx_dev *d) {
    d->destroy(d->handle, NULL);
    free(d);
}

vkx_u64 vkx_create_timeline(vkx_dev *d) {
    vkx_u64 r = {0, 0};
    SemaphoreType t = {.sType = ST_SEMAPHORE_TYPE, .type = 1};
    SemaphoreCreateInfo ci = {.sType = 9, .pNext = &t};
    r.result = d->create_semaphore(d->handle, &ci, NULL, &r.value);
    return r;
}

vkx_u64 vkx_create_set_layout(vkx_dev *d, uint32_t n) {
    vkx_u64 r = {-1, 0};
    SetLayoutBinding *b = calloc(n ? n : 1, sizeof *b);
    if (!b) return r;
    for (uint32_t i = 0; i < n; i++) b[i] = (SetLayoutBinding){i, STORAGE_BUFFER, 1, SHADER_COMPUTE, NULL};
    SetLayoutCreateInfo ci = {.sType = 32, .n = n, .bindings = b};
    r.result = d->create_set_layout(d->handle, &ci, NULL, &r.value);
    free(b);
    return r;
}

vkx_u64 vkx_create_pipeline_layout(vkx_dev *d, uint64_t set_layout, uint32_t push_size) {
    vkx_u64 r = {0, 0};
    PushRange range = {SHADER_COMPUTE, 0, push_size};
    PipelineLayoutCreateInfo ci = {.sType = 30, .n_sets = 1, .sets = &set_layout,
                                   .n_ranges = push_size ? 1 : 0, .ranges = &range};
    r.result = d->create_pipeline_layout(d->handle, &ci, NULL, &r.value);
    return r;
}

vkx_u64 vkx_create_descriptor_pool(vkx_dev *d, uint32_t sets, uint32_t buffers) {
    vkx_u64 r = {0, 0};
    PoolSize size = {STORAGE_BUFFER, buffers ? buffers : 1};
    DescriptorPoolCreateInfo ci = {.sType = 33, .max_sets = sets, .n = 1, .sizes = &size};
    r.result = d->create_descriptor_pool(d->handle, &ci, NULL, &r.value);
    return r;
}

vkx_u64 vkx_create_pipeline(vkx_dev *d, const vkx_pipeline *p) {
    vkx_u64 r = {-1, 0};
    uint32_t n = p->n_specs;
    SpecEntry *e = calloc(n ? n : 1, sizeof *e);
    uint32_t *values = calloc(n ? n : 1, sizeof *values);
    if (e && values) {
        for (uint32_t i = 0; i < n; i++) {
            e[i] = (SpecEntry){p->entries[2 * i], 4 * i, 4};
            values[i] = p->entries[2 * i + 1];
        }
        SpecInfo spec = {n, e, 4 * (size_t)n, values};
        RequiredSubgroupSize rs = {.sType = ST_REQUIRED_SUBGROUP_SIZE, .size = p->required_size};
        ComputePipelineCreateInfo ci = {.sType = 29, .layout = p->layout, .base_index = -1};
        ci.stage = (StageCreateInfo){.sType = 18, .pNext = p->required_size ? &rs : NULL,
                                     .flags = p->full_subgroups ? 2 : 0, .stage = SHADER_COMPUTE,
                                     .module = p->module, .name = "main", .spec = n ? &spec : NULL};
        r.result = d->create_pipelines(d->handle, p->cache, 1, &ci, NULL, &r.value);
    }
    free(e);
    free(values);
    return r;
}

void vkx_update_sets(vkx_dev *d, const vkx_write *w, uint32_t n) {
    enum { BATCH = 64 };
    BufferInfo info[BATCH];
    WriteSet set[BATCH];
    while (n > 0) {
        uint32_t m = n < BATCH ? n : BATCH;
        for (uint32_t i = 0; i < m; i++) {
            info[i] = (BufferInfo){w[i].buffer, w[i].offset, w[i].range};
            set[i] = (WriteSet){.sType = 35, .set = w[i].set, .binding = w[i].binding, .count = 1,
                                .type = STORAGE_BUFFER, .buffer = &info[i]};
        }
        d->update_sets(d->handle, m, set, 0, NULL);
        w += m;
        n -= m;
    }
}

void vkx_name(vkx_dev *d, uint32_t type, uint64_t handle, const char *name) {
    ObjectName n = {.sType = ST_OBJECT_NAME, .type = (int32_t)type, .handle = handle, .name = name};
    if (d->name) d->name(d->handle, &n);
}

enum {
    STAGES = STAGE_COMPUTE | STAGE_TRANSFER | STAGE_INDIRECT, // all that programs use
    WRITES = ACCESS_SHADER_WRITE | ACCESS_TRANSFER_WRITE,
    ACCESSES = WRITES | ACCESS_SHADER_READ | ACCESS_TRANSFER_READ | ACCESS_INDIRECT,
};

void vkx_cmd_barrier(vkx_dev *d, void *cb) {
    MemoryBarrier m = {.sType = 46, .src = WRITES, .dst = ACCESSES};
    d->barrier(cb, STAGES, STAGES, 0, 1, &m, 0, NULL, 0, NULL);
}

// vkx_cmd_memory_barrier is vkx_cmd_barrier without indirect reads after it. Those
// before it are waited for, because a dispatch reads its size before it computes.
void vkx_cmd_memory_barrier(vkx_dev *d, void *cb) {
    enum { SHADERS_AND_COPIES = STAGE_COMPUTE | STAGE_TRANSFER };
    MemoryBarrier m = {.sType = 46, .src = WRITES, .dst = ACCESSES & ~ACCESS_INDIRECT};
    d->barrier(cb, SHADERS_AND_COPIES, SHADERS_AND_COPIES, 0, 1, &m, 0, NULL, 0, NULL);
}

// vkx_cmd_gate_barrier also makes visible what the host wrote before it signalled
// the semaphore that the batch waited for.
void vkx_cmd_gate_barrier(vkx_dev *d, void *cb) {
    MemoryBarrier m = {.sType = 46, .src = WRITES | ACCESS_HOST_WRITE, .dst = ACCESSES};
    d->barrier(cb, STAGES | STAGE_HOST, STAGES, 0, 1, &m, 0, NULL, 0, NULL);
}

void vkx_cmd_host_barrier(vkx_dev *d, void *cb) {
    MemoryBarrier m = {.sType = 46, .src = WRITES, .dst = ACCESS_HOST_READ};
    d->barrier(cb, STAGE_COMPUTE | STAGE_TRANSFER, STAGE_HOST, 0, 1, &m, 0, NULL, 0, NULL);
}

void vkx_cmd_copy(vkx_dev *d, void *cb, uint64_t src, uint64_t dst, uint64_t src_off,
                  uint64_t dst_off, uint64_t size) {
    BufferCopy c = {src_off, dst_off, size};
    d->copy(cb, src, dst, 1, &c);
}

void vkx_cmd_label(vkx_dev *d, void *cb, const char *name) {
    Label l = {.sType = ST_LABEL, .name = name};
    if (d->begin_label) d->begin_label(cb, &l);
}

void vkx_cmd_end_label(vkx_dev *d, void *cb) {
    if (d->end_label) d->end_label(cb);
}

// vkx_record_copy begins cb (its pool resets it implicitly), copies between
// full barriers and ends it: one crossing from Go.
int32_t vkx_record_copy(vkx_dev *d, void *cb, uint64_t src, uint64_t dst, uint64_t src_off,
                        uint64_t dst_off, uint64_t size) {
    BeginInfo bi = {.sType = 42};
    int32_t r = d->begin(cb, &bi);
    if (r != 0) return r;
    vkx_cmd_barrier(d, cb);
    vkx_cmd_copy(d, cb, src, dst, src_off, dst_off, size);
    vkx_cmd_host_barrier(d, cb);
    return d->end(cb);
}

// vkx_submit makes n submissions in one vkQueueSubmit; submission i waits until
// the semaphore gates[i], unless that is 0, has reached until[i], takes the next
// counts[i] command buffers and sets the timeline to first + i.
vkx_u64 vkx_submit(vkx_dev *d, void *queue, const uint64_t *cbs, const uint32_t *counts,
                   const uint64_t *gates, const uint64_t *until, uint32_t n,
                   uint64_t timeline, uint64_t first) {
    enum { MAX = 64 };
    static const uint32_t all = STAGE_ALL;
    TimelineSubmit t[MAX];
    SubmitInfo s[MAX];
    uint64_t values[MAX];
    vkx_u64 r = {0, first - 1};
    if (n > MAX) {
        r.result = -1;
        return r;
    }
    for (uint32_t i = 0; i < n; i++) {
        values[i] = first + i;
        uint32_t waits = gates[i] != 0;
        t[i] = (TimelineSubmit){.sType = ST_TIMELINE_SUBMIT, .n_wait = waits, .wait = &until[i],
                                .n_signal = 1, .signal = &values[i]};
        s[i] = (SubmitInfo){.sType = 4, .pNext = &t[i], .n_wait = waits, .wait = &gates[i], .wait_stages = &all,
                            .n_cbs = counts[i], .cbs = cbs, .n_signal = 1, .signal = &timeline};
        cbs += counts[i];
    }
    r.result = d->submit(queue, n, s, 0);
    if (r.result == 0) r.value = first + n - 1;
    return r;
}

int32_t vkx_wait(vkx_dev *d, uint64_t timeline, uint64_t value, uint64_t timeout_ns) {
    SemaphoreWait w = {.sType = ST_SEMAPHORE_WAIT, .n = 1, .semaphores = &timeline, .values = &value};
    return d->wait(d->handle, &w, timeout_ns);
}

int32_t vkx_signal(vkx_dev *d, uint64_t timeline, uint64_t value) {
    SemaphoreSignal s = {.sType = ST_SEMAPHORE_SIGNAL, .semaphore = timeline, .value = value};
    return d->signal(d->handle, &s);
}

vkx_u64 vkx_counter(vkx_dev *d, uint64_t timeline) {
    vkx_u64 r = {0, 0};
    r.result = d->counter(d->handle, timeline, &r.value);
    return r;
}

int32_t vkx_timestamps(vkx_dev *d, uint64_t pool, uint32_t n, uint64_t *out) {
    return d->query_results(d->handle, pool, 0, n, 8 * (size_t)n, out, 8, 1); // 64-bit values
}

// vkx_host_types returns the memory types that memory of the host at p can be
// imported as.
vkx_u64 vkx_host_types(vkx_dev *d, void *p) {
    vkx_u64 r = {-7, 0}; // VK_ERROR_EXTENSION_NOT_PRESENT
    HostPointerProperties h = {.sType = ST_HOST_POINTER};
    if (d->host_pointer) r.result = d->host_pointer(d->handle, HOST_ALLOCATION, p, &h);
    r.value = h.types;
    return r;
}

// vkx_create_host_buffer creates a buffer that can lie in imported memory.
vkx_u64 vkx_create_host_buffer(vkx_dev *d, uint64_t size, uint32_t usage) {
    vkx_u64 r = {0, 0};
    ExternalBuffer e = {.sType = ST_EXTERNAL_BUFFER, .handle_types = HOST_ALLOCATION};
    BufferCreateInfo ci = {.sType = 12, .pNext = &e, .size = size, .usage = usage};
    r.result = d->create_buffer(d->handle, &ci, NULL, &r.value);
    return r;
}

vkx_u64 vkx_import_host(vkx_dev *d, void *p, uint64_t size, uint32_t type) {
    vkx_u64 r = {0, 0};
    ImportHost h = {.sType = ST_IMPORT_HOST, .handle_type = HOST_ALLOCATION, .p = p};
    MemoryAllocateInfo ai = {.sType = 5, .pNext = &h, .size = size, .type = type};
    r.result = d->allocate(d->handle, &ai, NULL, &r.value);
    return r;
}
