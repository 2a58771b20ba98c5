#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
// sort_scatter moves each key and its value to its place of this pass. Equal digits keep their order: within a subgroup
// by lane (ballots), then by item, by subgroup, by block.
//   reads counters histogram totals keys_in values_in; writes keys_out values_out, and after the depth sort's first
//   pass counters dispatch_args
// One workgroup a block.
#include "scan_group.glsl"

layout(local_size_x_id = 0, local_size_x = 256) in;
// True in the first pass of the depth sort: culled keys are dropped, the value is the index, and the number of keys
// left is stored.
layout(constant_id = 1) const bool FIRST_DEPTH_PASS = false;
// Digits the shared table has room for, and subgroups in a workgroup, chosen for the device: RADIX * N_SUBGROUPS uint
// of shared memory.
layout(constant_id = 2) const uint RADIX = 256u;
layout(constant_id = 3) const uint N_SUBGROUPS = 8u;
layout(constant_id = 4) const uint SUBGROUP_SIZE = 32u;
layout(constant_id = 5) const bool DEPTHS = false;  // keys_in are depths, sorted by depth_order(); keys_out are that

layout(push_constant, scalar) uniform Push {
    uint count_slot;
    uint shift;
    uint bits;          // 2^bits <= RADIX
    uint max_blocks;
} pc;
layout(binding = 0, scalar) buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Histogram { uint histogram[]; };    // [2^bits][max_blocks], scanned
layout(binding = 2, scalar) readonly buffer Totals { uint totals[]; };          // [2^bits]
layout(binding = 3, scalar) readonly buffer KeysIn { uint keys_in[]; };
layout(binding = 4, scalar) readonly buffer ValuesIn { uint values_in[]; };
layout(binding = 5, scalar) writeonly buffer KeysOut { uint keys_out[]; };
layout(binding = 6, scalar) writeonly buffer ValuesOut { uint values_out[]; };
layout(binding = 7, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };

// keys of each digit seen so far by each subgroup; later where the subgroup's first one goes
shared uint s_rank[RADIX * N_SUBGROUPS];
shared uint s_base[RADIX];                  // where the block's first key of each digit goes

#include "sort_pass.glsl"

// First position of every digit: exclusive sum over the digits' totals, plus what earlier blocks hold. Returns the
// number of keys that remain.
uint digit_bases(uint block) {
    uint lid = gl_LocalInvocationID.x;
    uint carry = 0u;
    for (uint base = 0u; base < (1u << pc.bits); base += gl_WorkGroupSize.x) {
        uint d = base + lid;
        bool in_range = d < (1u << pc.bits);
        uint total;
        uint before = group_exclusive_sum(in_range ? totals[d] : 0u, total);
        if (in_range) s_base[d] = carry + before + histogram[d * pc.max_blocks + block];
        carry += total;
    }
    return carry;
}

void main() {
    uint block = group_index();
    uint n = counters[pc.count_slot];
    uint lid = gl_LocalInvocationID.x;
    if (block * SORT_BLOCK >= n) return;
    uint remaining = digit_bases(block);
    if (FIRST_DEPTH_PASS && block == 0u && lid == 0u) set_visible(remaining);
    for (uint i = lid; i < RADIX * N_SUBGROUPS; i += gl_WorkGroupSize.x) s_rank[i] = 0u;
    barrier();

    // A subgroup owns a run of keys and reads it in stripes of its own width, so that (subgroup, stripe, lane) is the
    // order of the keys.
    uint run = SORT_BLOCK / N_SUBGROUPS;
    uint first = block * SORT_BLOCK + gl_SubgroupID * run + gl_SubgroupInvocationID;
    for (uint j = 0u; j < run; j += SUBGROUP_SIZE) {
        uint i = first + j;
        uint key = i < n ? keys_in[i] : CULLED;
        bool valid = i < n && !(FIRST_DEPTH_PASS && key == CULLED);
        if (DEPTHS) key = depth_order(key);
        subgroup_rank(sort_digit(key, pc.shift, pc.bits), pc.bits, valid);
    }
    barrier();
    for (uint d = lid; d < (1u << pc.bits); d += gl_WorkGroupSize.x) {
        uint at = s_base[d];
        for (uint s = 0u; s < N_SUBGROUPS; s++) {
            uint count = s_rank[s * RADIX + d];
            s_rank[s * RADIX + d] = at;
            at += count;
        }
    }
    barrier();
    // The same walk again, now with places: cheaper than keeping a device-dependent number of ranks in registers.
    for (uint j = 0u; j < run; j += SUBGROUP_SIZE) {
        uint i = first + j;
        uint key = i < n ? keys_in[i] : CULLED;
        bool valid = i < n && !(FIRST_DEPTH_PASS && key == CULLED);
        if (DEPTHS) key = depth_order(key);
        uint to = subgroup_rank(sort_digit(key, pc.shift, pc.bits), pc.bits, valid);
        if (valid) {
            keys_out[to] = key;
            values_out[to] = FIRST_DEPTH_PASS ? i : values_in[i];
        }
    }
}
