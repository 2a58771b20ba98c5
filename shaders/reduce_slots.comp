#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// reduce_slots sums the gradients of each visible splat over its tiles: along each row of tiles from left to right, then the rows from top to bottom.
// The order knows nothing of bands, so a view in one band or in many gives the same sums.
//   reads params counters splat_from_rank first_isect projected extents v_slots v_abs_slots; reads and writes v_projected v_abs_mean2d
// A workgroup takes 256 splats in depth order: one invocation a splat; a splat with many slots is then done by all, one row of tiles each.
#include "params.glsl"
#include "blend.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
// Absolute gradients of the mean are summed beside the others.
layout(constant_id = 1) const bool ABSGRAD = false;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Splats { uint splat_from_rank[]; };         // [V]
layout(binding = 3, scalar) readonly buffer First { uint first_isect[]; };              // [V]
layout(binding = 4, scalar) readonly buffer ProjectedB { Projected projected[]; };      // [N]
layout(binding = 5, scalar) readonly buffer Extents { vec3 extents[]; };                // [N] px
layout(binding = 6, scalar) readonly buffer VSlots { ProjectedGrad v_slots[]; };        // [n_isects]
layout(binding = 7, scalar) buffer VProjected { ProjectedGrad v_projected[]; };         // [N]
layout(binding = 8, scalar) readonly buffer VAbsSlots { vec2 v_abs_slots[]; };          // [n_isects] with ABSGRAD; else not read
layout(binding = 9, scalar) buffer VAbs { vec2 v_abs_mean2d[]; };                       // [N] with ABSGRAD; else not touched

// What is summed. What only ABSGRAD reads is read in branches: with conditional expressions AMD's compiler keeps 4 to 12 registers more without it.
struct Sum {
    ProjectedGrad g;
    vec2 abs_mean2d;
};

const uint MANY_SLOTS = 64u;
const uint ROWS_AT_ONCE = 64u;
const uint ABS_ROWS_AT_ONCE = ABSGRAD ? ROWS_AT_ONCE : 1u;
shared uint s_first[257];
shared uint s_any_big;
shared ProjectedGrad s_row[ROWS_AT_ONCE];
shared vec2 s_row_abs[ABS_ROWS_AT_ONCE];
shared uint s_row_slots[ROWS_AT_ONCE];

Sum zero() { return Sum(ProjectedGrad(vec2(0.0), vec3(0.0), 0.0, vec3(0.0)), vec2(0.0)); }

Sum plus(Sum a, Sum b) {
    ProjectedGrad g = ProjectedGrad(a.g.mean2d + b.g.mean2d, a.g.conic + b.g.conic, a.g.opacity + b.g.opacity, a.g.color + b.g.color);
    return Sum(g, ABSGRAD ? a.abs_mean2d + b.abs_mean2d : vec2(0.0));
}

// What the bands before have summed for a splat.
Sum so_far(uint id) {
    Sum sum = zero();
    if (pc.band > 0u) {
        sum.g = v_projected[id];
        if (ABSGRAD) sum.abs_mean2d = v_abs_mean2d[id];
    }
    return sum;
}

void store(uint id, Sum sum) {
    v_projected[id] = sum.g;
    if (ABSGRAD) v_abs_mean2d[id] = sum.abs_mean2d;
}

Sum row_sum(uint slot, uint n) {
    Sum sum = zero();
    for (uint j = 0u; j < n; j++) {
        Sum next = Sum(v_slots[slot + j], vec2(0.0));
        if (ABSGRAD) next.abs_mean2d = v_abs_slots[slot + j];
        sum = plus(sum, next);
    }
    return sum;
}

uint row_slots(uint id, int y) {
    ivec2 columns = tile_columns(projected[id].mean2d, projected[id].conic, extents[id], y, params[0].view.tile_width);
    return uint(columns.y - columns.x);
}

ivec2 splat_rows(uint id) {
    uint tile_height = params[0].view.tile_height;
    return clip_rows(tile_rows(projected[id].mean2d, extents[id], tile_height), band_rows(tile_height, pc.band, pc.n_bands));
}

// All invocations: the rows of tiles of one big splat, ROWS_AT_ONCE at a time.
void reduce_big(uint id, uint slot) {
    uint lid = gl_LocalInvocationID.x;
    ivec2 rows = splat_rows(id);
    Sum sum = zero();
    if (lid == 0u) sum = so_far(id);
    for (int y0 = rows.x; y0 < rows.y; y0 += int(ROWS_AT_ONCE)) {
        int y = y0 + int(lid);
        bool mine = lid < ROWS_AT_ONCE && y < rows.y;
        if (mine) s_row_slots[lid] = row_slots(id, y);
        barrier();
        uint n_rows = min(ROWS_AT_ONCE, uint(rows.y - y0));
        uint start = slot;
        for (uint r = 0u; r < n_rows; r++) {
            if (r < lid) start += s_row_slots[r];
            slot += s_row_slots[r];
        }
        if (mine) {
            Sum row = row_sum(start, s_row_slots[lid]);
            s_row[lid] = row.g;
            if (ABSGRAD) s_row_abs[lid] = row.abs_mean2d;
        }
        barrier();
        if (lid == 0u)
            for (uint r = 0u; r < n_rows; r++) sum = plus(sum, Sum(s_row[r], ABSGRAD ? s_row_abs[r] : vec2(0.0)));
        barrier();
    }
    if (lid == 0u) store(id, sum);
}

void main() {
    uint n_visible = counters[N_VISIBLE];
    uint n_isects = counters[N_ISECTS];
    uint base = group_index() * 256u;
    uint lid = gl_LocalInvocationID.x;
    if (base >= n_visible) return;
    // Without isects there are no slots, but the gradients of what is visible must still be set to zero.
    if (lid == 0u) s_any_big = 0u;
    for (uint j = lid; j < 257u; j += 256u) s_first[j] = n_isects == 0u ? 0u : base + j < n_visible ? first_isect[base + j] : n_isects;
    barrier();
    uint slots = s_first[lid + 1u] - s_first[lid];
    if (slots > MANY_SLOTS) s_any_big = 1u;
    if (base + lid < n_visible && slots <= MANY_SLOTS) {
        uint id = splat_from_rank[base + lid];
        Sum sum = so_far(id);
        ivec2 rows = slots == 0u ? ivec2(0) : splat_rows(id);
        uint slot = s_first[lid];
        for (int y = rows.x; y < rows.y; y++) {
            uint n = row_slots(id, y);
            sum = plus(sum, row_sum(slot, n));
            slot += n;
        }
        store(id, sum);
    }
    barrier();
    if (s_any_big == 0u) return;
    for (uint j = 0u; j < 256u; j++) {
        if (base + j >= n_visible) break;
        if (s_first[j + 1u] - s_first[j] > MANY_SLOTS) reduce_big(splat_from_rank[base + j], s_first[j]);
    }
}
