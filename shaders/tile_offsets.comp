#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// tile_offsets finds where each tile's isects begin: offset t is the first sorted isect of tile t or a later one; the
// last offset is their number. It also says in which order rasterize shall begin the tiles, those with many isects
// first: a long tile that is begun last keeps the device waiting. A workgroup orders its own tiles, and the workgroups
// take turns: all their longest ones, all their second longest. No byte of a model depends on this order.
//   reads params counters tile_ids (sorted); writes tile_offsets tile_order
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

layout(binding = 4, scalar) writeonly buffer Order { uint tile_order[]; };          // [n_tiles]

shared uint s_offsets[GROUP];
shared uint s_keys[GROUP];      // sorted by: numbers of isects, and which tile; no two are equal

// The first isect of tile t or a later one.
uint first_isect_of(uint t) {
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
    return lo;
}

void main() {
    uint n_tiles = params[0].view.tile_width * params[0].view.tile_height;
    uint group = group_index(), lid = gl_LocalInvocationID.x, first = group * ORDER_TILES, t = first + lid;
    if (first > n_tiles) return;
    uint offset = first_isect_of(t);
    if (t <= n_tiles && lid < ORDER_TILES) tile_offsets[t] = offset;
    s_offsets[lid] = offset;
    barrier();
    uint n = min(ORDER_TILES, n_tiles - first);
    uint key = lid < n ? min(s_offsets[lid + 1u] - offset, 0xFFFFFFu) << 8 | lid : 0u;
    s_keys[lid] = key;
    barrier();
    if (lid >= n) return;
    uint rank = 0u;
    for (uint i = 0u; i < n; i++) rank += s_keys[i] > key ? 1u : 0u;
    // The last workgroup may have fewer tiles, and drops out of the later turns.
    uint n_groups = div_up(n_tiles, ORDER_TILES), least = n_tiles - (n_groups - 1u) * ORDER_TILES;
    uint place = rank * n_groups - (rank > least ? rank - least : 0u) + group;
    tile_order[place] = t;
}
