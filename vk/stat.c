// What the driver tells about a compiled kernel (VK_KHR_pipeline_executable_properties).
#include "stat.h"

#include <stdlib.h>
#include <string.h>

#include "shim_abi.h"

void *vkx_device_proc(vkx_inst *in, void *dev, const char *name);

enum {
    ST_PIPELINE_INFO = 1000269001, ST_EXECUTABLE_PROPERTIES = 1000269002, ST_EXECUTABLE_INFO = 1000269003,
    ST_EXECUTABLE_STATISTIC = 1000269004,
    CAPTURE_STATISTICS = 0x40, COMPUTE_STAGE = 0x20, INCOMPLETE = 5,
};

typedef struct { int32_t sType; const void *pNext; uint64_t pipeline; } PipelineInfo;
typedef struct { int32_t sType; const void *pNext; uint64_t pipeline; uint32_t index; } ExecutableInfo;
typedef struct { int32_t sType; void *pNext; uint32_t stages; char name[256], description[256]; uint32_t subgroup_size; } ExecutableProperties;
typedef struct { int32_t sType; void *pNext; char name[256], description[256]; int32_t format; uint64_t value; } ExecutableStatistic;

typedef int32_t (*create_fn)(void *, uint64_t, uint32_t, const void *, const void *, uint64_t *);
typedef void (*destroy_fn)(void *, uint64_t, const void *);
typedef int32_t (*executables_fn)(void *, const void *, uint32_t *, ExecutableProperties *);
typedef int32_t (*statistics_fn)(void *, const void *, uint32_t *, ExecutableStatistic *);

// create compiles p without a cache and lets the driver keep its statistics.
static int32_t create(void *dev, create_fn make, const vkx_pipeline *p, uint64_t *out) {
    uint32_t n = p->n_specs;
    SpecEntry *e = calloc(n ? n : 1, sizeof *e);
    uint32_t *values = calloc(n ? n : 1, sizeof *values);
    int32_t r = -1; // VK_ERROR_OUT_OF_HOST_MEMORY
    if (e && values) {
        for (uint32_t i = 0; i < n; i++) {
            e[i] = (SpecEntry){p->entries[2 * i], 4 * i, 4};
            values[i] = p->entries[2 * i + 1];
        }
        SpecInfo spec = {n, e, 4 * (size_t)n, values};
        RequiredSubgroupSize rs = {.sType = ST_REQUIRED_SUBGROUP_SIZE, .size = p->required_size};
        ComputePipelineCreateInfo ci = {.sType = 29, .flags = CAPTURE_STATISTICS, .layout = p->layout, .base_index = -1};
        ci.stage = (StageCreateInfo){.sType = 18, .pNext = p->required_size ? &rs : NULL,
                                     .flags = p->full_subgroups ? 2 : 0, .stage = COMPUTE_STAGE,
                                     .module = p->module, .name = "main", .spec = n ? &spec : NULL};
        r = make(dev, 0, 1, &ci, NULL, out);
    }
    free(e);
    free(values);
    return r;
}

// first_executable reads the compute executable of a pipeline and its statistics.
static int32_t first_executable(void *dev, executables_fn executables, statistics_fn statistics, uint64_t pipe,
                                vkx_stats *out) {
    PipelineInfo pi = {.sType = ST_PIPELINE_INFO, .pipeline = pipe};
    ExecutableProperties ep = {.sType = ST_EXECUTABLE_PROPERTIES};
    uint32_t n = 1;
    int32_t r = executables(dev, &pi, &n, &ep);
    if (r < 0 || n == 0) return r;
    memcpy(out->name, ep.name, sizeof out->name);
    out->subgroup_size = ep.subgroup_size;
    ExecutableInfo ei = {.sType = ST_EXECUTABLE_INFO, .pipeline = pipe};
    ExecutableStatistic *s = calloc(VKX_MAX_STATS, sizeof *s);
    if (!s) return -1;
    for (int i = 0; i < VKX_MAX_STATS; i++) s[i].sType = ST_EXECUTABLE_STATISTIC;
    n = VKX_MAX_STATS;
    r = statistics(dev, &ei, &n, s);
    if (r >= 0) {
        out->n = n;
        for (uint32_t i = 0; i < n; i++) {
            memcpy(out->stats[i].name, s[i].name, sizeof s[i].name);
            out->stats[i].format = s[i].format;
            out->stats[i].bits = s[i].value;
        }
    }
    free(s);
    return r;
}

int32_t vkx_kernel_stats(vkx_inst *in, void *dev, const vkx_pipeline *p, vkx_stats *out, const char **call) {
    create_fn make = (create_fn)vkx_device_proc(in, dev, "vkCreateComputePipelines");
    destroy_fn destroy = (destroy_fn)vkx_device_proc(in, dev, "vkDestroyPipeline");
    executables_fn executables = (executables_fn)vkx_device_proc(in, dev, "vkGetPipelineExecutablePropertiesKHR");
    statistics_fn statistics = (statistics_fn)vkx_device_proc(in, dev, "vkGetPipelineExecutableStatisticsKHR");
    memset(out, 0, sizeof *out);
    *call = "vkGetDeviceProcAddr";
    if (!make || !destroy || !executables || !statistics) return -7; // VK_ERROR_EXTENSION_NOT_PRESENT
    uint64_t pipe = 0;
    *call = "vkCreateComputePipelines";
    int32_t r = create(dev, make, p, &pipe);
    if (r < 0) return r;
    *call = "vkGetPipelineExecutableStatisticsKHR";
    r = first_executable(dev, executables, statistics, pipe, out);
    destroy(dev, pipe, NULL);
    return r == INCOMPLETE ? 0 : r;
}
