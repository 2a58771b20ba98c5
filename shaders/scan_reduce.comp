#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// scan_reduce sums each block of SCAN_BLOCK values: the first of three kernels of an exclusive prefix sum.
//   reads counters values; writes block_sums
// One workgroup a block.
#include "dispatch.glsl"
#include "scan_group.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint count_slot;    // slot of counters that holds the number of values
} pc;
layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Values { uint values[]; };              // [n]
layout(binding = 2, scalar) writeonly buffer BlockSums { uint block_sums[]; };      // [ceil(n / SCAN_BLOCK)]

void main() {
    uint block = group_index();
    uint n = counters[pc.count_slot];
    if (block * SCAN_BLOCK >= n) return;
    uint sum = 0u;
    for (uint j = gl_LocalInvocationID.x; j < SCAN_BLOCK; j += GROUP) {
        uint i = block * SCAN_BLOCK + j;
        sum += i < n ? values[i] : 0u;
    }
    uint total;
    group_exclusive_sum(sum, total);
    if (gl_LocalInvocationID.x == 0u) block_sums[block] = total;
}
