#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_plan computes the number of splats after this refinement, and fails the unit if the allocated chunks cannot hold them.
//   reads params hole_offset; reads and writes counters
// One invocation.
#include "params.glsl"

layout(local_size_x = 1) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Holes { uint hole_offset[]; };      // [N] holes before each splat

void main() {
    uint n = counters[N_ACTIVE];
    uint holes = counters[N_HOLES];
    uint alive = n - holes;
    uint room = params[0].max_splats > alive ? params[0].max_splats - alive : 0u;
    uint added = min(counters[N_NEW], room);
    uint after = alive + added;
    if (after > params[0].splat_capacity) {
        if (counters[FAILED] == 0u) counters[FAILED_UNIT] = params[0].unit;
        counters[FAILED] |= FAILED_SPLATS;
        counters[NEEDED] = max(counters[NEEDED], after);
        return;
    }
    counters[N_NEW_ALLOWED] = added;
    counters[N_AFTER] = after;
    counters[N_FREE_HOLES] = after < n ? hole_offset[after] : holes;
}
