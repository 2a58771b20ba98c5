#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
// sort_sweep is a whole pass of a radix sort after sort_count: it moves each key and its value to its place. Where a
// block's keys of a digit go follows from what the blocks before it publish (see lookback.glsl: workgroups wait for
// each other). Equal digits keep their order: within a subgroup by lane (ballots), then by item, by subgroup, by block.
//   reads keys_in values_in; reads and writes counters tallies published; writes keys_out values_out, and after the
//   depth sort's first pass dispatch_args
// One workgroup a block.
#include "scan_group.glsl"
#include "lookback.glsl"

layout(local_size_x = 256) in;
// True in the first pass of the depth sort: culled keys are dropped, the value is the index, and the number of keys
// left is stored.
layout(constant_id = 1) const bool FIRST_DEPTH_PASS = false;
// Bits of a digit: at most 8, and 2^BITS for each subgroup fit in s_rank.
layout(constant_id = 2) const uint BITS = 8u;
layout(constant_id = 3) const uint SUBGROUP_SIZE = 32u;
layout(constant_id = 4) const bool DEPTHS = false;  // keys_in are depths, sorted by depth_order(); keys_out are that

layout(push_constant, scalar) uniform Push {
    uint count_slot;
    uint pass;
    uint n_passes;
    uint max_blocks;
} pc;
layout(binding = 0, scalar) buffer Counters { uint counters[]; };
// [n_passes][RADIX] counts, then [n_passes] tickets
layout(binding = 1, scalar) buffer Tallies { uint tallies[]; };
// [n_passes][max_blocks][RADIX]
layout(binding = 2, scalar) coherent volatile buffer Published { uint published[]; };
layout(binding = 3, scalar) readonly buffer KeysIn { uint keys_in[]; };
layout(binding = 4, scalar) readonly buffer ValuesIn { uint values_in[]; };
layout(binding = 5, scalar) writeonly buffer KeysOut { uint keys_out[]; };
layout(binding = 6, scalar) writeonly buffer ValuesOut { uint values_out[]; };
layout(binding = 7, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };

const uint RADIX = 1u << BITS;
const uint ITEMS = SORT_BLOCK / GROUP;  // keys of an invocation
const uint WINDOW = 16u;                // blocks that are looked at at once

// [subgroup][RADIX] as in sort_pass.glsl; later the block's keys, then its values, in their new order
shared uint s_rank[SORT_BLOCK];
// [RADIX] place in the block of its first key of each digit; later what a place needs to become that in the output
shared uint s_start[256];
shared uint s_block;

#include "sort_pass.glsl"

// How many keys of digit d the blocks before this one have. Invocations ask for their digits side by side: a block's
// words are contiguous.
uint look_back(uint block, uint d) {
    uint sum = 0u;
    while (block > 0u) {    // sum lacks the blocks before `block`
        uint word[WINDOW];
        // Beyond the first block that one again: what it publishes is the sum of all, and ends the walk.
        [[unroll]] for (uint k = 0u; k < WINDOW; k++)
            word[k] = published[((pc.pass * pc.max_blocks + block - 1u - min(k, block - 1u)) << BITS) + d];
        bool go_on = true;
        [[unroll]] for (uint k = 0u; k < WINDOW; k++) {
            go_on = go_on && !look_is_empty(word[k]);
            if (go_on) {
                sum += word[k] & LOOK_VALUE;
                block = look_is_all(word[k]) ? 0u : block - 1u;
                go_on = block > 0u;
            }
        }
    }
    return sum;
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    if (lid == 0u) s_block = atomicAdd(tallies[(pc.n_passes << BITS) + pc.pass], 1u);
    uint n = counters[pc.count_slot];
    for (uint i = lid; i < SORT_BLOCK; i += GROUP) s_rank[i] = 0u;
    barrier();
    uint block = s_block;
    if (block * SORT_BLOCK >= n) return;
    uint shift = pc.pass * BITS;

    // A subgroup owns a run of keys and reads it in stripes of its own width, so that (subgroup, stripe, lane) is the
    // order of the keys.
    uint first = block * SORT_BLOCK + gl_SubgroupID * SUBGROUP_SIZE * ITEMS + gl_SubgroupInvocationID;
    uint key[ITEMS], value[ITEMS], place[ITEMS];
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) {
        uint i = first + k * SUBGROUP_SIZE;
        key[k] = i < n ? keys_in[i] : CULLED;
        value[k] = i;
        if (!FIRST_DEPTH_PASS) value[k] = i < n ? values_in[i] : 0u;
    }
    // Where each digit's keys begin in the output; this needs no key yet.
    uint remaining;
    uint begin = group_exclusive_sum(lid < RADIX ? tallies[(pc.pass << BITS) + lid] : 0u, remaining);
    if (FIRST_DEPTH_PASS && block == 0u && lid == 0u) set_visible(remaining);
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) {
        bool valid = first + k * SUBGROUP_SIZE < n && !(FIRST_DEPTH_PASS && key[k] == CULLED);
        place[k] = valid ? 0u : CULLED;
        if (DEPTHS) key[k] = depth_order(key[k]);
        uint rank = subgroup_rank(sort_digit(key[k], shift, BITS), BITS, valid);
        if (valid) place[k] = rank;
    }
    barrier();
    uint count = 0u;
    if (lid < RADIX) {
        for (uint s = 0u; s < gl_NumSubgroups; s++) {
            uint c = s_rank[s * RADIX + lid];
            s_rank[s * RADIX + lid] = count;
            count += c;
        }
        published[((pc.pass * pc.max_blocks + block) << BITS) + lid] = count | (block == 0u ? LOOK_ALL : LOOK_OWN);
    }
    uint n_valid;
    uint start = group_exclusive_sum(count, n_valid);
    if (lid < RADIX) s_start[lid] = start;
    barrier();
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) {
        uint d = sort_digit(key[k], shift, BITS);
        if (place[k] != CULLED) place[k] += s_start[d] + s_rank[gl_SubgroupID * RADIX + d];
    }
    barrier();
    // In shared memory first, so that neighbours write to neighbouring addresses.
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) if (place[k] != CULLED) s_rank[place[k]] = key[k];
    if (lid < RADIX) {
        uint before = look_back(block, lid);
        if (block > 0u) published[((pc.pass * pc.max_blocks + block) << BITS) + lid] = before + count | LOOK_ALL;
        s_start[lid] = begin + before - start;
    }
    barrier();
    uint to[ITEMS];
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) {
        uint j = lid + k * GROUP;
        if (j >= n_valid) continue;
        uint moved = s_rank[j];
        to[k] = s_start[sort_digit(moved, shift, BITS)] + j;
        keys_out[to[k]] = moved;
    }
    barrier();
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) if (place[k] != CULLED) s_rank[place[k]] = value[k];
    barrier();
    [[unroll]] for (uint k = 0u; k < ITEMS; k++)
        if (lid + k * GROUP < n_valid) values_out[to[k]] = s_rank[lid + k * GROUP];
}
