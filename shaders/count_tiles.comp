#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// count_tiles counts the tiles of the current band that each visible splat can touch, in depth order.
//   reads params counters splat_from_rank shapes; writes tile_counts
// A workgroup takes 256 visible splats and deals their rows of tiles to its invocations.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Splats { uint splat_from_rank[]; };     // [V]
layout(binding = 3, scalar) readonly buffer Shapes { vec4 shapes[]; };              // [N][2], a Shape
layout(binding = 4, scalar) writeonly buffer Counts { uint tile_counts[]; };        // [V]
#include "count_tiles.glsl"

void main() {
    uint n_visible = counters[N_VISIBLE];
    uint rank = global_index();
    if (rank - gl_LocalInvocationID.x >= n_visible) return;
    uint n = count_tiles(rank, rank < n_visible);
    if (rank < n_visible) tile_counts[rank] = n;
}
