#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// sort_scan turns each digit's row of block counts into exclusive prefix sums and stores the digit's total.
//   reads counters; reads and writes histogram; writes totals
// One workgroup a digit.
#include "sort.glsl"
#include "scan_group.glsl"

layout(local_size_x_id = 0, local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint count_slot;
    uint max_blocks;
} pc;
layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) buffer Histogram { uint histogram[]; };     // [2^bits][max_blocks]
layout(binding = 2, scalar) writeonly buffer Totals { uint totals[]; }; // [2^bits]

void main() {
    uint row = group_index() * pc.max_blocks;
    uint n_blocks = div_up(counters[pc.count_slot], SORT_BLOCK);
    uint carry = 0u;
    for (uint base = 0u; base < n_blocks; base += gl_WorkGroupSize.x) {
        uint i = base + gl_LocalInvocationID.x;
        uint v = i < n_blocks ? histogram[row + i] : 0u;
        uint total;
        uint before = group_exclusive_sum(v, total);
        if (i < n_blocks) histogram[row + i] = carry + before;
        carry += total;
    }
    if (gl_LocalInvocationID.x == 0u) totals[group_index()] = carry;
}
