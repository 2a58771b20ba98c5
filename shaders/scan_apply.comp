#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// scan_apply replaces each value by the sum of all values before it.
//   reads counters block_sums; reads and writes values
// One workgroup a block.
#include "dispatch.glsl"
#include "scan_group.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint count_slot;
} pc;
layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) buffer Values { uint values[]; };                   // [n]
layout(binding = 2, scalar) readonly buffer BlockSums { uint block_sums[]; };   // exclusive

void main() {
    uint block = group_index();
    uint n = counters[pc.count_slot];
    if (block * SCAN_BLOCK >= n) return;
    uint carry = block_sums[block];
    for (uint base = 0u; base < SCAN_BLOCK; base += GROUP) {
        uint i = block * SCAN_BLOCK + base + gl_LocalInvocationID.x;
        uint total;
        uint before = group_exclusive_sum(i < n ? values[i] : 0u, total);
        if (i < n) values[i] = carry + before;
        carry += total;
    }
}
