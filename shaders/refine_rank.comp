#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_rank chooses what the splats are ranked for: growth, or, where more live than the target, going.
//   reads params counters prune_keys; writes keys, where it is going
// One invocation a splat.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer PruneKeys { uint prune_keys[]; };   // [N]
// [N] grow_keys, and what to sort by then
layout(binding = 3, scalar) writeonly buffer Keys { uint keys[]; };

void main() {
    uint id = global_index();
    if (id >= counters[N_ACTIVE]) return;
    uint target = params[0].target_splats;
    if (target != 0u && counters[N_ACTIVE] - counters[N_HOLES] > target) keys[id] = prune_keys[id];
}
