#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// tile_offsets finds where each tile's isects begin: offset t is the first sorted isect of tile t or a later one; the last offset is their number.
//   reads params counters tile_ids (sorted); writes tile_offsets
// One invocation an offset; a binary search each, so that tiles without isects need no care.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer TileIds { uint tile_ids[]; };           // [n_isects], ascending
layout(binding = 3, scalar) writeonly buffer Offsets { uint tile_offsets[]; };      // [n_tiles + 1]

void main() {
    uint t = global_index();
    if (t > params[0].view.tile_width * params[0].view.tile_height) return;
    uint lo = 0u, hi = counters[N_ISECTS];
    while (lo < hi) {
        uint mid = (lo + hi) >> 1u;
        if (tile_ids[mid] < t) lo = mid + 1u; else hi = mid;
    }
    tile_offsets[t] = lo;
}
