#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_select lets the first of the ranked splats grow, as many as there is room for; or, where more live than the
// target, makes the first go.
//   reads params counters splat_from_rank; writes actions new_offset hole_offset (as flags, summed next)
// One invocation a ranked splat.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Splats { uint splat_from_rank[]; }; // [N_VISIBLE]
layout(binding = 3, scalar) writeonly buffer Actions { uint actions[]; };       // [N]
layout(binding = 4, scalar) writeonly buffer New { uint new_offset[]; };        // [N] 1 where a splat is added
layout(binding = 5, scalar) writeonly buffer Holes { uint hole_offset[]; };     // [N] 1 where a splat goes

void main() {
    uint rank = global_index();
    if (rank >= counters[N_VISIBLE] || counters[FAILED] != 0u) return;
    uint id = splat_from_rank[rank];
    uint target = params[0].target_splats;
    uint alive = counters[N_ACTIVE] - counters[N_HOLES];
    if (target != 0u && alive > target) {
        bool goes = rank < alive - target;
        actions[id] = goes ? ACTION_PRUNE : ACTION_KEEP;
        if (goes) hole_offset[id] = 1u;
    } else if (rank < counters[N_NEW_ALLOWED]) {
        new_offset[id] = 1u;
    } else {
        actions[id] = ACTION_KEEP;
    }
}
