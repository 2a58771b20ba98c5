#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// tile_offsets finds where each tile's isects begin: offset t is the first sorted isect of tile t or a later one; the
// last offset is their number.
//   reads params counters tile_ids (sorted); writes tile_offsets
// One invocation an offset; a search each, so that tiles without isects need no care. It is a search in eighths: seven
// loads at once and a third of the steps of a binary one, because it is the waiting for one load after another that
// takes the time.
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
        uint part = div_up(hi - lo, 8u);
        uint below = 0u;    // last elements of parts that are less than t
        [[unroll]] for (uint k = 1u; k < 8u; k++) {
            uint last = lo + k * part - 1u;
            below += last < hi && tile_ids[last] < t ? 1u : 0u;
        }
        if (below < 7u) hi = min(hi, lo + (below + 1u) * part - 1u);
        lo += below * part;
    }
    tile_offsets[t] = lo;
}
