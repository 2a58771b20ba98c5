#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// rasterize blends the splats of each tile of the current band front to back, over the background.
//   reads params tile_offsets slot_from_isect splat_from_slot projected; writes render last_ids states tile_from_bucket
// One workgroup a tile, one invocation a pixel. A bucket of splats at a time goes through shared memory.
#include "params.glsl"
#include "blend.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
// False for pictures alone: nothing is kept for a backward pass.
layout(constant_id = 1) const bool KEEP_STATES = false;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 2, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 3, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 4, scalar) readonly buffer ProjectedB { Projected projected[]; };      // [N]
layout(binding = 5, scalar) writeonly buffer Render { vec4 render[]; };                 // [P] colour with background, final transmittance
layout(binding = 6, scalar) writeonly buffer LastIds { uint last_ids[]; };              // [P] 1 + index in the tile of the last blended isect; 0: none
layout(binding = 7, scalar) writeonly buffer States { vec4 states[]; };                 // [isects / BUCKET_SIZE][TILE_PIXELS] colour so far, transmittance
layout(binding = 8, scalar) writeonly buffer Buckets { uint tile_from_bucket[]; };      // [isects / BUCKET_SIZE + n_tiles]

shared Projected s_splat[BUCKET_SIZE];
shared uint s_active;

// Buckets are numbered so that no prefix sum is needed: tile t has the numbers from offset[t] / BUCKET_SIZE + t up to the next tile's, at least as
// many as it has buckets. Saved states skip each tile's first bucket, so theirs start at offset[t] / BUCKET_SIZE.
void name_buckets(uint tile, uint begin, uint end) {
    uint last = end / BUCKET_SIZE + tile + 1u;
    for (uint b = begin / BUCKET_SIZE + tile + gl_LocalInvocationID.x; b < last; b += TILE_PIXELS) tile_from_bucket[b] = tile;
}

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint lid = gl_LocalInvocationID.x;
    uint begin = tile_offsets[tile], end = tile_offsets[tile + 1u];
    if (KEEP_STATES) name_buckets(tile, begin, end);
    uvec2 tile_xy = uvec2(tile % v.tile_width, tile / v.tile_width);
    ivec2 rows = band_rows(v.tile_height, pc.band, pc.n_bands);
    if (int(tile_xy.y) < rows.x || int(tile_xy.y) >= rows.y) return;
    uvec2 pixel = tile_xy * TILE_SIZE + uvec2(lid % TILE_SIZE, lid / TILE_SIZE);
    bool inside = pixel.x < v.width && pixel.y < v.height;
    vec2 centre = vec2(pixel) + 0.5;

    float transmittance = 1.0;
    vec3 color = vec3(0.0);
    uint last = 0u;
    bool done = !inside;
    for (uint first = begin; first < end; first += BUCKET_SIZE) {
        if (lid == 0u) s_active = 0u;
        barrier();
        if (!done) s_active = 1u;
        barrier();
        if (s_active == 0u) break;
        if (KEEP_STATES && first > begin) {
            uint state = begin / BUCKET_SIZE + (first - begin) / BUCKET_SIZE - 1u;
            states[state * TILE_PIXELS + lid] = vec4(color, transmittance);
        }
        uint n = min(BUCKET_SIZE, end - first);
        if (lid < n) s_splat[lid] = projected[splat_from_slot[slot_from_isect[first + lid]]];
        barrier();
        for (uint j = 0u; j < n && !done; j++) {
            float falloff;
            float alpha = min(MAX_ALPHA, splat_alpha(s_splat[j].mean2d - centre, s_splat[j].conic, s_splat[j].opacity, falloff));
            if (alpha == 0.0) continue;
            precise float next = transmittance * (1.0 - alpha);
            if (next <= TRANSMITTANCE_THRESHOLD) {
                done = true;
                break;
            }
            // Written as fma, so that no compiler chooses: with and without KEEP_STATES, in one band or many, the same bytes.
            color = fma(s_splat[j].color, vec3(alpha * transmittance), color);
            transmittance = next;
            last = first + j - begin + 1u;
        }
        barrier();  // s_splat and s_active are about to be overwritten
    }
    if (!inside) return;
    uint at = pixel.y * v.width + pixel.x;
    render[at] = vec4(color + transmittance * v.background, transmittance);
    if (KEEP_STATES) last_ids[at] = last;
}
