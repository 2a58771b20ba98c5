#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// count_pairs counts what blending each tile of the current band takes, see TilePairs. For `vksplat bench` alone.
//   reads params tile_offsets slot_from_isect splat_from_slot shapes paints; writes tile_pairs
// One workgroup a tile, one invocation a pixel, as in rasterize; then an invocation takes a splat, or the lists of a
// few patches.
#include "params.glsl"
#include "blend.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"
const bool ALL_PATCHES = false;
const uint PATCH_WIDTH = 8u, PATCH_HEIGHT = 4u;     // px
#include "touch.glsl"

layout(local_size_x = 256) in;  // LANES

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
    uint column;    // patches of a list of rasterize_bwd: one, or half of the tile's, below each other
    uint side;      // lists that share a subgroup there
    uint round;     // splats whose lists it goes through before all wait for each other
} pc;

// What blending a tile takes.
struct TilePairs {
    uint seen;      // (pixel, splat) pairs that are looked at until the pixels are opaque
    uint blended;   // those of them that change the pixel
    uint isects;    // isects that any pixel looks at
    uint all;       // isects
    // (patch, splat) pairs that touch, in front of the last splat that any pixel of the patch looks at
    uint visits;
    uint patches_bwd;   // in front of the last that changes any pixel of the patch
    // (list, splat) pairs likewise; lists of a subgroup wait for the longest one of a round, and this waiting counts
    uint visits_bwd;
};
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 2, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 3, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 4, scalar) readonly buffer Shapes { vec4 shapes[]; };                  // [N][2], a Shape
layout(binding = 5, scalar) readonly buffer Paints { vec4 paints[]; };                  // [N] opacity, colour
layout(binding = 6, scalar) writeonly buffer Pairs { TilePairs tile_pairs[]; };         // [n_tiles]

const uint LANES = 256u;
// Sums and maxima of integers, which know no order.
shared uint s_seen, s_blended, s_isects, s_visits, s_patches_bwd, s_visits_bwd;
shared uint s_patch_seen[PATCHES];      // splats up to the last that a pixel of the patch looks at
shared uint s_patch_last[PATCHES];      // up to the last that changes one
shared uint s_touched[LANES];           // patches that splats touch, a bit each
shared uint s_touched_bwd[LANES];       // those of them of whose pixels any may still change

#include "fetch.glsl"

Blended isect(uint i) { return blended_splat(splat_from_slot[slot_from_isect[i]]); }

// Goes through a pixel's splats.
void look(vec2 centre, uint begin, uint n, uint patch_id) {
    float transmittance = 1.0;
    uint seen = 0u, blended = 0u, last = 0u;
    while (seen < n) {
        Splat s = splat_of(isect(begin + seen));
        seen++;
        float alpha;
        vec2 d = s.mean2d - centre;
        if (!covers(s, column_of(s, d.x), d.y, alpha)) continue;
        float weight, next;
        absorb(min(MAX_ALPHA, alpha), transmittance, weight, next);
        if (next <= TRANSMITTANCE_THRESHOLD) break;
        transmittance = next;
        blended++;
        last = seen;
    }
    atomicAdd(s_seen, seen);
    atomicAdd(s_blended, blended);
    atomicMax(s_isects, seen);
    atomicMax(s_patch_seen[patch_id], seen);
    atomicMax(s_patch_last[patch_id], last);
}

// Counts the visits to the splats of s_touched, of which the first is number k of the tile.
void count_visits(uint k) {
    uint lid = gl_LocalInvocationID.x, visits = 0u, touched_bwd = 0u;
    for (uint p = 0u; p < PATCHES; p++) {
        uint touches = s_touched[lid] & 1u << p;
        if (k + lid < s_patch_seen[p] && touches != 0u) visits++;
        if (k + lid < s_patch_last[p]) touched_bwd |= touches;
    }
    atomicAdd(s_visits, visits);
    atomicAdd(s_patches_bwd, uint(bitCount(touched_bwd)));
    s_touched_bwd[lid] = touched_bwd;
    barrier();
    uint lists = PATCHES / pc.column, groups = lists / pc.side, first = lid / groups * pc.round;
    if (first >= LANES) return;
    uint longest = 0u;
    for (uint l = lid % groups * pc.side; l < (lid % groups + 1u) * pc.side; l++) {
        uint patches = pc.column == 1u ? 1u << l : 0x55u << l;     // two patches lie in a row
        uint n = 0u;
        for (uint i = first; i < first + pc.round; i++) n += (s_touched_bwd[i] & patches) != 0u ? 1u : 0u;
        longest = max(longest, n);
    }
    atomicAdd(s_visits_bwd, pc.side * longest);
}

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint lid = gl_LocalInvocationID.x;
    uvec2 tile_xy = uvec2(tile % v.tile_width, tile / v.tile_width);
    ivec2 rows = band_rows(v.tile_height, pc.band, pc.n_bands);
    if (int(tile_xy.y) < rows.x || int(tile_xy.y) >= rows.y) return;
    if (lid == 0u) {
        s_seen = s_blended = s_isects = s_visits = s_patches_bwd = s_visits_bwd = 0u;
    }
    if (lid < PATCHES) s_patch_seen[lid] = s_patch_last[lid] = 0u;
    barrier();
    uvec2 corner = tile_xy * TILE_SIZE, place = uvec2(lid % TILE_SIZE, lid / TILE_SIZE), pixel = corner + place;
    uint begin = tile_offsets[tile], n = tile_offsets[tile + 1u] - begin;
    if (pixel.x < v.width && pixel.y < v.height)
        look(vec2(pixel) + 0.5, begin, n, place.y / PATCH_HEIGHT * (TILE_SIZE / PATCH_WIDTH) + place.x / PATCH_WIDTH);
    barrier();
    uint looked_at = s_isects;
    for (uint k = 0u; k < looked_at; k += LANES) {
        s_touched[lid] = k + lid < looked_at ? touched_patches(isect(begin + k + lid), vec2(corner)) : 0u;
        barrier();
        count_visits(k);
        barrier();
    }
    if (lid == 0u)
        tile_pairs[tile] = TilePairs(s_seen, s_blended, looked_at, n, s_visits, s_patches_bwd, s_visits_bwd);
}
