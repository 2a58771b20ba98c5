#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// count_pairs counts the (pixel, splat) pairs of each tile of the current band: those that blending has to look at
// until the pixels are opaque, those of them that change a pixel, the isects that any pixel looks at, and all isects.
// For `vksplat bench` alone.
//   reads params tile_offsets slot_from_isect splat_from_slot projected; writes tile_pairs
// One workgroup a tile, one invocation a pixel, as in rasterize.
#include "params.glsl"
#include "blend.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 2, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 3, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 4, scalar) readonly buffer ProjectedB { Projected projected[]; };      // [N]
// [n_tiles] pairs looked at, blended; isects looked at, all
layout(binding = 5, scalar) writeonly buffer Pairs { uvec4 tile_pairs[]; };

shared uvec2 s_pairs[TILE_PIXELS];
shared uint s_isects[TILE_PIXELS];

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint lid = gl_LocalInvocationID.x;
    uvec2 tile_xy = uvec2(tile % v.tile_width, tile / v.tile_width);
    ivec2 rows = band_rows(v.tile_height, pc.band, pc.n_bands);
    if (int(tile_xy.y) < rows.x || int(tile_xy.y) >= rows.y) return;
    uvec2 pixel = tile_xy * TILE_SIZE + uvec2(lid % TILE_SIZE, lid / TILE_SIZE);
    uint begin = tile_offsets[tile], end = tile_offsets[tile + 1u];
    uint n = pixel.x < v.width && pixel.y < v.height ? end - begin : 0u;
    float transmittance = 1.0;
    uint seen = 0u, blended = 0u;
    while (seen < n) {
        Splat s = splat_of(projected[splat_from_slot[slot_from_isect[begin + seen]]]);
        seen++;
        float alpha;
        vec2 d = s.mean2d - (vec2(pixel) + 0.5);
        if (!covers(s, column_of(s, d.x), d.y, alpha)) continue;
        precise float weight = min(MAX_ALPHA, alpha) * transmittance;
        precise float next = transmittance - weight;
        if (next <= TRANSMITTANCE_THRESHOLD) break;
        transmittance = next;
        blended++;
    }
    s_pairs[lid] = uvec2(seen, blended);
    s_isects[lid] = seen;
    for (uint half_size = TILE_PIXELS / 2u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size) {
            s_pairs[lid] += s_pairs[lid + half_size];
            s_isects[lid] = max(s_isects[lid], s_isects[lid + half_size]);
        }
    }
    if (lid == 0u) tile_pairs[tile] = uvec4(s_pairs[0], s_isects[0], end - begin);
}
