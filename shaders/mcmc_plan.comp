#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// mcmc_plan computes how many splats this refinement adds, and fails the unit if the allocated chunks cannot hold them:
// before anything has changed.
//   reads params; reads and writes counters; writes dispatch_args
// One invocation.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 1) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };
layout(binding = 2, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };
#include "fail.glsl"

void main() {
    uint n = counters[N_ACTIVE];
    uint target = min(params[0].target_splats, params[0].max_splats);
    uint added = n > 0u && target > n ? target - n : 0u;
    if (n + added > params[0].splat_capacity) {
        fail(FAILED_SPLATS, n + added);
        return;
    }
    counters[N_NEW] = added;
    counters[N_NEW_ALLOWED] = added;
    counters[N_AFTER] = n + added;
    // Relocation moves at most all, growth adds so many.
    dispatch_args[ARGS_DRAWS] = fold_groups(div_up(max(n, added), GROUP));
}
