// What the driver tells about a compiled kernel: see stat.c.
#ifndef VKSPLAT_VKX_STAT_H
#define VKSPLAT_VKX_STAT_H
#include "shim.h"

enum { VKX_MAX_STATS = 64 };

// The numbers of one kernel. format: 0 bool32, 1 int64, 2 uint64, 3 double; bits holds the value's bytes.
typedef struct {
    char name[256];
    uint32_t subgroup_size, n;
    struct {
        char name[256];
        int32_t format;
        uint64_t bits;
    } stats[VKX_MAX_STATS];
} vkx_stats;

// vkx_kernel_stats compiles p anew, without a cache, and reads its statistics. call is set to what failed.
int32_t vkx_kernel_stats(vkx_inst *in, void *dev, const vkx_pipeline *p, vkx_stats *out, const char **call);
#endif
