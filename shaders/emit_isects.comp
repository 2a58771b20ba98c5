#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
// emit_isects writes the (tile, splat) pairs of the current band: a splat's slots are contiguous, row by row of tiles.
//   reads params counters splat_from_rank first_isect shapes; writes tile_ids splat_from_slot slot_ids
// A workgroup writes SORT_BLOCK slots, whichever splats they belong to: near splats are large and come first in the
// order of depth, so equal numbers of splats would be most unequal work. An invocation walks the rows of tiles of its
// own splat, unless these are many: then the subgroup deals them to its invocations. Slots are gathered in shared
// memory and written side by side.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint SUBGROUP_SIZE = 32u;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Splats { uint splat_from_rank[]; };     // [V]
layout(binding = 3, scalar) readonly buffer First { uint first_isect[]; };          // [V]
layout(binding = 4, scalar) readonly buffer Shapes { vec4 shapes[]; };              // [N][2], a Shape
layout(binding = 5, scalar) writeonly buffer TileIds { uint tile_ids[]; };          // [n_isects]
layout(binding = 6, scalar) writeonly buffer SlotSplats { uint splat_from_slot[]; };// [n_isects]
// [n_isects] 0, 1, 2, ...: the values to sort
layout(binding = 7, scalar) writeonly buffer Slots { uint slot_ids[]; };
#include "shape.glsl"

shared uint s_tile[SORT_BLOCK];     // of each slot of the workgroup
shared uint s_splat[SORT_BLOCK];

// What a splat's tiles follow from.
struct Spread {
    Shape shape;
    ivec2 rows;     // of tiles, in the band
};

Spread spread_of(uint id) {
    uint tile_height = params[0].view.tile_height;
    Shape s = load_shape(id);
    return Spread(s, clip_rows(tile_rows(s.mean2d, s.extents, tile_height),
                               band_rows(tile_height, pc.band, pc.n_bands)));
}

// Row y of tiles: the first column and the one after the last.
ivec2 columns(Spread s, int y) { return tile_columns(s.shape, y, params[0].view.tile_width); }

// The last rank whose first slot is at or before `slot`. Each subgroup looks for itself, in rounds that leave one of as
// many parts as it has invocations, which takes no barrier.
uint rank_of_slot(uint slot, uint n_visible) {
    uint lo = 0u, hi = n_visible;
    while (hi - lo > 1u) {
        uint step = div_up(hi - lo, SUBGROUP_SIZE), at = lo + gl_SubgroupInvocationID * step;
        bool before = at < hi && first_isect[min(at, n_visible - 1u)] <= slot;
        lo += (subgroupBallotBitCount(subgroupBallot(before)) - 1u) * step;
        hi = min(hi, lo + step);
    }
    return lo;
}

// Notes those of slots [slot, end) that lie in [from, to): of a splat, and of tiles from the first on.
void note(uint slot, uint end, uint tile, uint id, uint from, uint to) {
    for (uint q = max(slot, from); q < min(end, to); q++) {
        s_tile[q - from] = tile + (q - slot);
        s_splat[q - from] = id;
    }
}

// Notes the slots of a splat, the first of which is `slot`, by the invocation alone.
void note_alone(Spread s, uint slot, uint id, uint from, uint to) {
    for (int y = s.rows.x; y < s.rows.y; y++) {
        ivec2 c = columns(s, y);
        uint end = slot + uint(c.y - c.x);
        note(slot, end, uint(y) * params[0].view.tile_width + uint(c.x), id, from, to);
        slot = end;
    }
}

// Does the same by the subgroup, all of which must call it with the same splat: an invocation takes a row.
void note_together(Spread s, uint slot, uint id, uint from, uint to) {
    for (int top = s.rows.x; top < s.rows.y; top += int(SUBGROUP_SIZE)) {
        int y = top + int(gl_SubgroupInvocationID);
        ivec2 c = y < s.rows.y ? columns(s, y) : ivec2(0);
        uint n = uint(c.y - c.x), first = slot + subgroupExclusiveAdd(n);
        note(first, first + n, uint(y) * params[0].view.tile_width + uint(c.x), id, from, to);
        slot += subgroupAdd(n);
    }
}

// What an invocation does alone: no more rows and slots, so that it does not keep its subgroup waiting.
const int FEW_ROWS = 6;
const uint FEW_SLOTS = 32u;

void main() {
    uint n_visible = counters[N_VISIBLE];
    uint n_isects = counters[N_ISECTS];     // 0: nothing to draw, or the unit failed
    uint from = group_index() * SORT_BLOCK;
    if (from >= n_isects) return;
    uint to = min(from + SORT_BLOCK, n_isects);
    uint rank = rank_of_slot(from, n_visible), slot = from;
    while (slot < to) {
        // Large splats are neighbours: no subgroup has them all.
        uint own = rank + gl_SubgroupInvocationID * (GROUP / SUBGROUP_SIZE) + gl_SubgroupID;
        uint first = own < n_visible ? first_isect[own] : to;
        uint end = own + 1u < n_visible ? first_isect[own + 1u] : n_isects;
        bool taken = first < to && end > max(from, first);
        bool together = false;
        uint id = 0u;
        if (taken) {
            id = splat_from_rank[own];
            Spread s = spread_of(id);
            together = s.rows.y - s.rows.x > FEW_ROWS || end - first > FEW_SLOTS;
            if (!together) note_alone(s, first, id, from, to);
        }
        for (uvec4 who = subgroupBallot(together); who != uvec4(0u); who = subgroupBallot(together)) {
            uint lane = subgroupBallotFindLSB(who);
            uint shared_id = subgroupShuffle(id, lane);
            note_together(spread_of(shared_id), subgroupShuffle(first, lane), shared_id, from, to); // few registers
            together = together && gl_SubgroupInvocationID != lane;
        }
        rank += GROUP;
        uint next = rank < n_visible ? first_isect[rank] : to;
        // In a band long runs of splats may have no tiles: they are passed over.
        if (next == slot) rank = max(rank, rank_of_slot(slot, n_visible));
        slot = next;
    }
    barrier();
    for (uint q = from + gl_LocalInvocationID.x; q < to; q += GROUP) {
        tile_ids[q] = s_tile[q - from];
        splat_from_slot[q] = s_splat[q - from];
        slot_ids[q] = q;
    }
}
