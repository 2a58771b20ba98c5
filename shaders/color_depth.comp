#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// color_depth makes depths of the colours of the splats that a view sees: blended like colours, they are the sum of weight times depth.
//   reads counters depth_keys; writes projected
// One invocation a splat.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 1, scalar) readonly buffer DepthKeys { uint depth_keys[]; };      // [N] bits of camera z, CULLED
layout(binding = 2, scalar) writeonly buffer ProjectedB { float projected[]; };     // [N][9], a Projected

const uint PARTS = 9u;          // words of a Projected
const uint COLOR_PART = 6u;

void main() {
    uint i = global_index();
    if (i >= counters[N_ACTIVE] || depth_keys[i] == CULLED) return;
    for (uint k = 0u; k < 3u; k++) projected[i * PARTS + COLOR_PART + k] = uintBitsToFloat(depth_keys[i]);
}
