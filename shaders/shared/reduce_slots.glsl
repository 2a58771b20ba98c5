// What a workgroup of reduce_slots does. The includer declares the kernel's interface, and whether there is an ABSGRAD:
// gradients beside the nine components.
#ifndef REDUCE_SLOTS_GLSL
#define REDUCE_SLOTS_GLSL
#include "shape.glsl"

const uint RUN = 4u;    // splats; REDUCE_RANKS is a multiple
const uint PARTS = 9u;
#ifdef DEPTH
const uint ABS_PARTS = 3u;      // and the gradient by the inverse of the depth
#else
const uint ABS_PARTS = 2u;
#endif
shared uint s_big;      // bit k: the group's splat k has many slots
shared uint s_row_slots[REDUCE_RANKS];
shared float s_row[REDUCE_RANKS * PARTS];
shared float s_row_abs[ABSGRAD ? REDUCE_RANKS * ABS_PARTS : 1u];

// sum + slots [slot, slot + n) one after the other, of one component; `precise`, so that the passes of several bands
// add in the order of one. Several are on their way from memory at a time; the last ones' neighbours are loaded again
// rather than asked for one by one.
#define FOLD(name, values, parts) float name(float start, uint slot, uint part, uint n) { \
        precise float sum = start; \
        uint at = slot * parts + part; \
        for (; n >= 8u; n -= 8u, at += 8u * parts) { \
            float a = values[at], b = values[at + parts], c = values[at + 2u * parts], d = values[at + 3u * parts]; \
            float e = values[at + 4u * parts], f = values[at + 5u * parts]; \
            float g = values[at + 6u * parts], h = values[at + 7u * parts]; \
            sum = sum + a + b + c + d + e + f + g + h; \
        } \
        for (; n > 0u; n -= min(n, 4u), at += 4u * parts) { \
            float a = values[at], b = values[at + min(n - 1u, 1u) * parts]; \
            float c = values[at + min(n - 1u, 2u) * parts], d = values[at + min(n - 1u, 3u) * parts]; \
            sum = sum + a; \
            if (n > 1u) sum = sum + b; \
            if (n > 2u) sum = sum + c; \
            if (n > 3u) sum = sum + d; \
        } \
        return sum; \
    }
FOLD(fold, v_slots, PARTS)
FOLD(fold_abs, v_abs_slots, ABS_PARTS)

// What the bands before have summed for a splat.
float so_far(uint id, uint part) { return pc.band > 0u ? v_projected[id * PARTS + part] : 0.0; }
float abs_so_far(uint id, uint part) { return pc.band > 0u ? v_abs_mean2d[id * ABS_PARTS + part] : 0.0; }

uint row_slots(uint id, int y) {
    ivec2 columns = tile_columns(load_shape(id), y, params[0].view.tile_width);
    return uint(columns.y - columns.x);
}

ivec2 splat_rows(uint id) {
    Shape s = load_shape(id);
    return tile_rows(s.mean2d, s.extents, params[0].view.tile_height);
}

// Whether a splat, which has n slots in this band, has many in the image.
bool has_many(uint id, uint n) {
    if (counters[N_ISECTS] == 0u) return false;     // the unit failed: there are no slots
    if (pc.n_bands == 1u) return n > MANY_SLOTS;
    ivec2 rows = splat_rows(id);
    uint all = 0u;
    for (int y = rows.x; y < rows.y && all <= MANY_SLOTS; y++) all += row_slots(id, y);
    return all > MANY_SLOTS;
}

// The rank of the group's splat k; those from n_visible on do not exist.
uint rank_of(uint k, uint n_visible) {
    uint n_groups = div_up(n_visible, REDUCE_RANKS);
    return (k / RUN * n_groups + group_index()) * RUN + k % RUN;
}

// First slot of a rank and the number of slots. Without isects there are none, but the gradients of what is visible
// must still be set to zero.
uvec2 slots_of(uint rank, uint n_visible) {
    uint n_isects = counters[N_ISECTS];
    if (n_isects == 0u) return uvec2(0u);
    uint first = first_isect[rank];
    return uvec2(first, (rank + 1u < n_visible ? first_isect[rank + 1u] : n_isects) - first);
}

// First slot of row r of those in s_row_slots, of which the first begins at `slot`.
uint row_start(uint slot, uint r) {
    for (uint q = 0u; q < REDUCE_RANKS; q++) slot += q < r ? s_row_slots[q] : 0u;
    return slot;
}

// All invocations: a splat with many slots, REDUCE_RANKS rows of tiles at a time. What a round writes to shared memory
// was last read before the round before passed its second barrier, or before this one passes its first.
void reduce_big(uint id, uint slot) {
    uint lid = gl_LocalInvocationID.x;
    uint tile_height = params[0].view.tile_height;
    ivec2 rows = clip_rows(splat_rows(id), band_rows(tile_height, pc.band, pc.n_bands));
    precise float sum = lid < PARTS ? so_far(id, lid) : 0.0;
    precise float abs_sum = ABSGRAD && lid < ABS_PARTS ? abs_so_far(id, lid) : 0.0;
    for (int y0 = rows.x; y0 < rows.y; y0 += int(REDUCE_RANKS)) {
        uint n_rows = min(REDUCE_RANKS, uint(rows.y - y0));
        if (lid < REDUCE_RANKS) s_row_slots[lid] = lid < n_rows ? row_slots(id, y0 + int(lid)) : 0u;
        barrier();
        uint r = lid / PARTS;
        if (r < n_rows) s_row[lid] = fold(0.0, row_start(slot, r), lid % PARTS, s_row_slots[r]);
        r = lid / ABS_PARTS;
        if (ABSGRAD && r < n_rows) s_row_abs[lid] = fold_abs(0.0, row_start(slot, r), lid % ABS_PARTS, s_row_slots[r]);
        slot = row_start(slot, REDUCE_RANKS);
        barrier();
        if (lid < PARTS)
            for (uint q = 0u; q < n_rows; q++) sum = sum + s_row[q * PARTS + lid];
        if (ABSGRAD && lid < ABS_PARTS)
            for (uint q = 0u; q < n_rows; q++) abs_sum = abs_sum + s_row_abs[q * ABS_PARTS + lid];
    }
    if (lid < PARTS) v_projected[id * PARTS + lid] = sum;
    if (ABSGRAD && lid < ABS_PARTS) v_abs_mean2d[id * ABS_PARTS + lid] = abs_sum;
}

void main() {
    uint n_visible = counters[N_VISIBLE];
    if (group_index() * REDUCE_RANKS >= n_visible) return;
    uint lid = gl_LocalInvocationID.x;
    if (lid == 0u) s_big = 0u;
    barrier();
    uint k = lid / PARTS, part = lid % PARTS, rank = rank_of(k, n_visible);
    if (k < REDUCE_RANKS && rank < n_visible) {
        uint id = splat_from_rank[rank];
        uvec2 slots = slots_of(rank, n_visible);
        if (has_many(id, slots.y)) {
            if (part == 0u) atomicOr(s_big, 1u << k);
        } else {
            v_projected[id * PARTS + part] = fold(so_far(id, part), slots.x, part, slots.y);
        }
    }
    k = lid / ABS_PARTS;
    part = lid % ABS_PARTS;
    rank = rank_of(k, n_visible);
    if (ABSGRAD && k < REDUCE_RANKS && rank < n_visible) {
        uint id = splat_from_rank[rank];
        uvec2 slots = slots_of(rank, n_visible);
        if (!has_many(id, slots.y))
            v_abs_mean2d[id * ABS_PARTS + part] = fold_abs(abs_so_far(id, part), slots.x, part, slots.y);
    }
    barrier();
    for (uint big = s_big; big != 0u; big &= big - 1u) {
        rank = rank_of(uint(findLSB(big)), n_visible);
        reduce_big(splat_from_rank[rank], slots_of(rank, n_visible).x);
    }
}

#endif
