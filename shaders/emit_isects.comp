#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// emit_isects writes the (tile, splat) pairs of the current band: a splat's slots are contiguous, row by row of tiles.
//   reads params counters splat_from_rank first_isect projected extents; writes tile_ids splat_from_slot slot_ids
// A workgroup takes 256 splats in depth order and spreads their slots over its invocations, so that one huge splat does not hold up a lane.
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
layout(binding = 3, scalar) readonly buffer First { uint first_isect[]; };          // [V]
layout(binding = 4, scalar) readonly buffer ProjectedB { Projected projected[]; };  // [N]
layout(binding = 5, scalar) readonly buffer Extents { vec3 extents[]; };            // [N] px
layout(binding = 6, scalar) writeonly buffer TileIds { uint tile_ids[]; };          // [n_isects]
layout(binding = 7, scalar) writeonly buffer SlotSplats { uint splat_from_slot[]; };// [n_isects]
layout(binding = 8, scalar) writeonly buffer Slots { uint slot_ids[]; };            // [n_isects] 0, 1, 2, ...: the values to sort

shared uint s_first[257];

// Tile number k of splat id in this band, or the last tile if there are fewer (count_tiles and this never disagree).
uint kth_tile(uint id, uint k) {
    vec2 mean = projected[id].mean2d;
    vec3 conic = projected[id].conic;
    vec3 e = extents[id];
    uint tile_width = params[0].view.tile_width;
    uint tile_height = params[0].view.tile_height;
    ivec2 rows = clip_rows(tile_rows(mean, e, tile_height), band_rows(tile_height, pc.band, pc.n_bands));
    for (int y = rows.x; y < rows.y; y++) {
        ivec2 columns = tile_columns(mean, conic, e, y, tile_width);
        uint n = uint(columns.y - columns.x);
        if (k < n) return uint(y) * tile_width + uint(columns.x) + k;
        k -= n;
    }
    return tile_width * tile_height - 1u;
}

void main() {
    uint n_visible = counters[N_VISIBLE];
    uint n_isects = counters[N_ISECTS];
    if (n_isects == 0u) return;     // nothing to draw, or the unit failed
    uint base = group_index() * 256u;
    uint lid = gl_LocalInvocationID.x;
    for (uint j = lid; j < 257u; j += 256u) s_first[j] = base + j < n_visible ? first_isect[base + j] : n_isects;
    barrier();
    for (uint s = s_first[0] + lid; s < s_first[256]; s += 256u) {
        // The last rank whose first slot is at or before s.
        uint lo = 0u, hi = 256u;
        while (hi - lo > 1u) {
            uint mid = (lo + hi) >> 1u;
            if (s_first[mid] <= s) lo = mid; else hi = mid;
        }
        uint id = splat_from_rank[base + lo];
        tile_ids[s] = kth_tile(id, s - s_first[lo]);
        splat_from_slot[s] = id;
        slot_ids[s] = s;
    }
}
