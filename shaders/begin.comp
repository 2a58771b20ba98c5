#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// begin starts a unit of work: it sets the counts of this unit and the dispatch arguments that depend on the number of
// splats. If an earlier unit failed, the unit is empty: no splats, no work. Tallies begin at 0.
//   reads params counters; writes counters dispatch_args tallies
// One invocation sets counts and arguments; the workgroups clear tallies in turns.
#include "params.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n_tallies;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };               // [N_COUNTERS]
layout(binding = 2, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };    // [N_ARGS]
layout(binding = 3, scalar) writeonly buffer Tallies { uint tallies[]; };       // [n_tallies] see lookback.glsl
#include "args.glsl"

void main() {
    uint id = global_index();
    if (id == 0u) {
        uint n = counters[FAILED] == 0u ? counters[N_SPLATS] : 0u;
        for (uint i = N_ACTIVE; i < N_COUNTERS; i++) counters[i] = 0u;
        counters[N_ACTIVE] = n;
        set_args(n, counters[FAILED] != 0u);
    }
    uint n_invocations = gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_WorkGroupSize.x;
    for (uint i = id; i < pc.n_tallies; i += n_invocations) tallies[i] = 0u;
}
