#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// scan_tiles is count_tiles and the prefix sum of its counts at once: it finds each visible splat's first isect in the
// current band, in depth order, and whether the isects fit. Workgroups wait for each other (see lookback.glsl).
//   reads params splat_from_rank shapes; reads and writes counters tallies; writes first_isect
//   dispatch_args
// A workgroup takes visible splats, 256 at a time, and deals their rows of tiles to its invocations. It takes them
// often enough that there are not many more workgroups than run at once: each waits for the one before.
#include "params.glsl"
#include "dispatch.glsl"
#include "lookback.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
    uint capacity;      // most isects that fit
    uint most_groups;   // more workgroups than this are few splats for each
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Splats { uint splat_from_rank[]; };         // [V]
layout(binding = 3, scalar) readonly buffer Shapes { vec4 shapes[]; };                  // [N][2], a Shape
// ticket, then a word a block; 0 before
layout(binding = 4, scalar) coherent volatile buffer Tallies { uint tallies[]; };
layout(binding = 5, scalar) buffer First { uint first_isect[]; };             // [V]
layout(binding = 6, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };

const uint MOST_ROUNDS = 16u;
shared uint s_block;
shared uint s_before;

#include "isects.glsl"
#include "count_tiles.glsl"

// Sum over the subgroup of numbers up to LOOK_VALUE, or LOOK_VALUE if it is larger. The upper bits are summed apart to
// notice.
uint subgroup_sum(uint v) {
    uint high = subgroupAdd(v >> 8u);
    uint sum = subgroupAdd(v);
    return high > LOOK_VALUE >> 8u ? LOOK_VALUE : min(sum, LOOK_VALUE);
}

// Sum over all blocks before this one, at most LOOK_VALUE. Every lane of one subgroup must call it; each looks at one
// block.
uint look_back(uint block) {
    const uint none = 64u;
    uint lane = gl_SubgroupInvocationID;
    uint sum = 0u;
    while (block > 0u) {    // sum lacks the blocks before `block`
        uint word = lane < block ? tallies[block - lane] : LOOK_ALL;    // of block - 1 - lane
        uint empty = subgroupMin(look_is_empty(word) ? lane : none);
        uint all = subgroupMin(look_is_all(word) ? lane : none);
        sum = min(sum + subgroup_sum(lane < empty && lane <= all ? word & LOOK_VALUE : 0u), LOOK_VALUE);
        block = all < empty ? 0u : block - min(empty, gl_SubgroupSize);
    }
    return sum;
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    if (lid == 0u) s_block = atomicAdd(tallies[0], 1u);
    uint n_visible = counters[N_VISIBLE];
    barrier();
    uint block = s_block;
    uint rounds = clamp(div_up(n_visible, GROUP * pc.most_groups), 1u, MOST_ROUNDS);
    uint first = block * rounds * GROUP, end = min(first + rounds * GROUP, n_visible);
    if (first >= n_visible) return;
    uint total = 0u;
    for (uint rank = first + lid; rank - lid < end; rank += GROUP) {
        uint sum;
        uint before = group_exclusive_sum(count_tiles(rank, rank < end), sum);
        if (rank < end) first_isect[rank] = total + before;
        total = min(total + sum, LOOK_VALUE);   // 256 splats on the largest image have 2^30 tiles: nothing wrapped
    }
    if (gl_SubgroupID == 0u) {
        if (lid == 0u && block > 0u) tallies[1u + block] = LOOK_OWN | total;
        uint sum = look_back(block);
        if (lid == 0u) {
            uint all = min(sum + total, LOOK_VALUE);
            tallies[1u + block] = LOOK_ALL | all;
            s_before = sum;
            if (end == n_visible) counters[N_ISECTS] = set_isects(all, pc.capacity);
        }
    }
    barrier();
    for (uint rank = first + lid; rank < end; rank += GROUP) first_isect[rank] += s_before;
}
