#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
// sort_histogram counts, for every block of keys, how many keys have each digit.
//   reads counters keys; writes histogram
// One workgroup a block. The shared counts are order-free integer sums.
#include "sort.glsl"

layout(local_size_x = 256) in;
// True in the first pass of the depth sort: the keys of culled splats do not take part.
layout(constant_id = 1) const bool SKIP_CULLED = false;
layout(constant_id = 2) const bool DEPTHS = false;  // keys are depths, sorted by depth_order()

layout(push_constant, scalar) uniform Push {
    uint count_slot;    // slot of counters that holds the number of keys
    uint shift;
    uint bits;          // at most 8
    uint max_blocks;    // row length of histogram
} pc;
layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Keys { uint keys[]; };                 // [n]
layout(binding = 2, scalar) writeonly buffer Histogram { uint histogram[]; };      // [2^bits][max_blocks]

shared uint s_count[256];

void main() {
    uint block = group_index();
    uint n = counters[pc.count_slot];
    if (block * SORT_BLOCK >= n) return;
    uint lid = gl_LocalInvocationID.x;
    s_count[lid] = 0u;
    barrier();
    for (uint j = lid; j < SORT_BLOCK; j += 256u) {
        uint i = block * SORT_BLOCK + j;
        if (i >= n) break;
        uint key = keys[i];
        if (SKIP_CULLED && key == CULLED) continue;
        if (DEPTHS) key = depth_order(key);
        atomicAdd(s_count[sort_digit(key, pc.shift, pc.bits)], 1u);
    }
    barrier();
    if (lid < (1u << pc.bits)) histogram[lid * pc.max_blocks + block] = s_count[lid];
}
