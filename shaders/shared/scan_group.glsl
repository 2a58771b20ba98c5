// Exclusive prefix sum over a workgroup of GROUP invocations, any subgroup size from 4 up. Integers, so the order of
// additions cannot show.
#ifndef SCAN_GROUP_GLSL
#define SCAN_GROUP_GLSL
#include "const.glsl"

shared uint s_scan[GROUP / 4u + 1u];

// Returns the sum of v over the lower invocations; total is the sum over all. Every invocation must call it.
uint group_exclusive_sum(uint v, out uint total) {
    uint within = subgroupExclusiveAdd(v);
    barrier();  // s_scan may still be read from an earlier call
    uint all = subgroupAdd(v);
    if (subgroupElect()) s_scan[gl_SubgroupID] = all;
    barrier();
    uint before = 0u;
    total = 0u;
    for (uint i = 0u; i < gl_NumSubgroups; i++) {
        before += i < gl_SubgroupID ? s_scan[i] : 0u;
        total += s_scan[i];
    }
    return before + within;
}

#endif
