#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_plan computes the number of splats after this refinement, and fails the unit if the allocated chunks cannot
// hold them.
//   reads params; reads and writes counters
// One invocation.
#include "params.glsl"

layout(local_size_x = 1) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };
#include "fail.glsl"

void main() {
    uint target = params[0].target_splats;
    uint alive = counters[N_ACTIVE] - counters[N_HOLES];
    uint ceiling = params[0].max_splats;
    if (target != 0u) ceiling = min(ceiling, target);
    uint room = ceiling > alive ? ceiling - alive : 0u;
    uint wanted = counters[N_VISIBLE];  // as many as refine_classify and the sort found
    uint excess = target != 0u && alive > target ? alive - target : 0u;
    if (excess > 0u) wanted = 0u;       // then they are ranked for going
    uint added = min(wanted, room);
    uint after = alive + added - excess;
    if (after > params[0].splat_capacity) {
        fail(FAILED_SPLATS, after);
        return;
    }
    counters[N_NEW] = target != 0u ? added : wanted;
    counters[N_NEW_ALLOWED] = added;
    counters[N_AFTER] = after;
}
