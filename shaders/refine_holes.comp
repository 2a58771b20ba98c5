#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_holes lists the places that pruned splats leave, in ascending order, and counts those below the new number of
// splats.
//   reads actions hole_offset; reads and writes counters; writes hole_list
// One invocation a splat.
#include "const.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer Actions { uint actions[]; };        // [N]
layout(binding = 2, scalar) readonly buffer Holes { uint hole_offset[]; };      // [N]
layout(binding = 3, scalar) writeonly buffer HoleList { uint hole_list[]; };    // [n_holes]

void main() {
    uint id = global_index();
    if (id >= counters[N_ACTIVE]) return;
    uint after = counters[N_AFTER];
    if (id == 0u) counters[N_FREE_HOLES] = after < counters[N_ACTIVE] ? hole_offset[after] : counters[N_HOLES];
    if (actions[id] == ACTION_PRUNE) hole_list[hole_offset[id]] = id;
}
