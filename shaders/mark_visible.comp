#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// mark_visible marks the splats that a view sees; the marks' prefix sums number them.
//   reads counters depth_keys; writes marks
// One invocation a splat.
#include "const.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer DepthKeys { uint depth_keys[]; };   // [N]
layout(binding = 2, scalar) writeonly buffer Marks { uint marks[]; };           // [N] 1 or 0

void main() {
    uint i = global_index();
    if (i < counters[N_ACTIVE]) marks[i] = depth_keys[i] != CULLED ? 1u : 0u;
}
