#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// sort_count counts how many keys have each digit, for all passes of a sort at once, and clears what sort_sweep
// publishes.
//   reads counters keys; reads and writes tallies, which are 0 before; writes published
// A workgroup takes every COUNT_GROUPS-th block. All counts are order-free integer sums.
#include "sort.glsl"

layout(local_size_x = 256) in;
// True in the depth sort: the keys of culled splats do not take part.
layout(constant_id = 1) const bool SKIP_CULLED = false;
layout(constant_id = 2) const uint BITS = 8u;       // of a digit
layout(constant_id = 3) const bool DEPTHS = false;  // keys are depths, sorted by depth_order()

layout(push_constant, scalar) uniform Push {
    uint count_slot;    // slot of counters that holds the number of keys
    uint n_passes;      // at most SORT_DIGITS / 2^BITS
    uint max_blocks;
} pc;
layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Keys { uint keys[]; };              // [n]
// [n_passes][2^BITS] counts, then [n_passes] tickets of sort_sweep
layout(binding = 2, scalar) buffer Tallies { uint tallies[]; };
layout(binding = 3, scalar) writeonly buffer Published { uint published[]; };   // [n_passes][max_blocks][2^BITS]

const uint COUNT_GROUPS = 1024u;
const uint ITEMS = SORT_BLOCK / GROUP;
shared uint s_count[SORT_DIGITS];

void count(uint block, uint n) {
    uint batch[ITEMS];
    uint first = block * SORT_BLOCK + gl_LocalInvocationID.x;
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) {
        uint i = first + k * GROUP;
        batch[k] = i < n ? keys[i] : 0u;
    }
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) {
        if (first + k * GROUP >= n || SKIP_CULLED && batch[k] == CULLED) continue;
        if (DEPTHS) batch[k] = depth_order(batch[k]);
        for (uint pass = 0u; pass < pc.n_passes; pass++)
            atomicAdd(s_count[(pass << BITS) + sort_digit(batch[k], pass * BITS, BITS)], 1u);
    }
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    uint n = counters[pc.count_slot];
    uint n_blocks = div_up(n, SORT_BLOCK);
    if (group_index() >= min(n_blocks, COUNT_GROUPS)) return;
    for (uint i = lid; i < SORT_DIGITS; i += GROUP) s_count[i] = 0u;
    barrier();
    for (uint block = group_index(); block < n_blocks; block += COUNT_GROUPS) {
        count(block, n);
        for (uint pass = 0u; pass < pc.n_passes; pass++)
            if (lid < (1u << BITS)) published[((pass * pc.max_blocks + block) << BITS) + lid] = 0u;
    }
    barrier();
    for (uint i = lid; i < pc.n_passes << BITS; i += GROUP)
        if (s_count[i] != 0u) atomicAdd(tallies[i], s_count[i]);
}
