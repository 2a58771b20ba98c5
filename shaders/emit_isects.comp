#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// emit_isects writes the (tile, splat) pairs of the current band: a splat's slots are contiguous, row by row of tiles.
//   reads params counters splat_from_rank first_isect projected extents; writes tile_ids splat_from_slot slot_ids
// A workgroup writes SORT_BLOCK slots, whichever splats they belong to: near splats are large and come first in the
// order of depth, so equal numbers of splats would be most unequal work.
#include "params.glsl"
#include "blend.glsl"
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
// [n_isects] 0, 1, 2, ...: the values to sort
layout(binding = 8, scalar) writeonly buffer Slots { uint slot_ids[]; };
#include "tile_rows.glsl"

// The rows in hand, one an invocation.
shared uint s_slots_before[GROUP];  // slots of the rows of lower invocations
shared uint s_first_tile[GROUP];
shared uint s_row_id[GROUP];        // the row's splat
LAST_UP_TO(row_of_slot, s_slots_before)

// The last rank whose first slot is at or before `slot`, by all invocations: each round leaves one of GROUP parts.
uint rank_of_slot(uint slot, uint n_visible) {
    uint lo = 0u, hi = n_visible;
    while (hi - lo > 1u) {
        uint step = div_up(hi - lo, GROUP), at = lo + gl_LocalInvocationID.x * step, n;
        group_exclusive_sum(at < hi && first_isect[min(at, n_visible - 1u)] <= slot ? 1u : 0u, n);
        lo += (n - 1u) * step;
        hi = min(hi, lo + step);
    }
    return lo;
}

// Writes those of n slots from `slot` on, which belong to the rows in hand, that lie in [from, to).
void write_slots(uint slot, uint n, uint from, uint to) {
    for (uint s = max(slot, from) + gl_LocalInvocationID.x; s < min(slot + n, to); s += GROUP) {
        uint j = row_of_slot(s - slot);
        tile_ids[s] = s_first_tile[j] + (s - slot - s_slots_before[j]);
        splat_from_slot[s] = s_row_id[j];
        slot_ids[s] = s;
    }
}

void main() {
    uint n_visible = counters[N_VISIBLE];
    uint n_isects = counters[N_ISECTS];     // 0: nothing to draw, or the unit failed
    uint from = group_index() * SORT_BLOCK;
    if (from >= n_isects) return;
    uint to = min(from + SORT_BLOCK, n_isects);
    uint lid = gl_LocalInvocationID.x;
    uint rank = rank_of_slot(from, n_visible);
    uint slot = first_isect[rank];
    while (slot < to && rank < n_visible) {
        uint n_rows = take_splat(rank + lid, rank + lid < n_visible);
        for (uint j = 0u; j < n_rows && slot < to; j += GROUP) {
            TileRow row = TileRow(0u, 0u, 0u);
            if (j + lid < n_rows) row = tile_row(j + lid);
            uint n;
            s_slots_before[lid] = group_exclusive_sum(row.n_tiles, n);
            s_first_tile[lid] = row.first_tile;
            s_row_id[lid] = s_id[row.k];
            barrier();
            write_slots(slot, n, from, to);
            slot += n;
        }
        rank += GROUP;
        // In a band long runs of splats may have no tiles: they are passed over.
        if (n_rows == 0u) rank = max(rank, rank_of_slot(slot, n_visible));
    }
}
