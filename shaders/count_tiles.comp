#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// count_tiles counts the tiles of the current band that each visible splat can touch, in depth order.
//   reads params counters splat_from_rank projected extents; writes tile_counts
// One invocation a visible splat.
#include "params.glsl"
#include "blend.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Splats { uint splat_from_rank[]; };     // [V]
layout(binding = 3, scalar) readonly buffer ProjectedB { Projected projected[]; };  // [N]
layout(binding = 4, scalar) readonly buffer Extents { vec3 extents[]; };            // [N] px
layout(binding = 5, scalar) writeonly buffer Counts { uint tile_counts[]; };        // [V]

void main() {
    uint rank = global_index();
    if (rank >= counters[N_VISIBLE]) return;
    uint id = splat_from_rank[rank];
    vec2 mean = projected[id].mean2d;
    vec3 conic = projected[id].conic;
    vec3 e = extents[id];
    uint tile_width = params[0].view.tile_width;
    uint tile_height = params[0].view.tile_height;
    ivec2 rows = clip_rows(tile_rows(mean, e, tile_height), band_rows(tile_height, pc.band, pc.n_bands));
    tile_counts[rank] = tiles_in_rows(mean, conic, e, rows, tile_width);
}
