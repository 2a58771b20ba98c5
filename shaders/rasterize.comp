#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
// rasterize blends the splats of each tile of the current band front to back, over the background.
//   reads params tile_offsets slot_from_isect splat_from_slot projected; writes render last_ids states tile_from_bucket
// One workgroup a tile (see raster.glsl). The next batch of splats is fetched while one is blended.
#include "tiles.glsl"
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"

layout(local_size_x_id = 0, local_size_x = 128) in;
// False for pictures alone: nothing is kept for a backward pass.
layout(constant_id = 1) const bool KEEP_STATES = false;
layout(constant_id = 2) const uint SUBGROUP_SIZE = 32u;
// Splats go to all quadrants, whether they touch them or not: for tests, since it must change no byte.
layout(constant_id = 3) const bool ALL_QUADRANTS = false;

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
#include "raster.glsl"

const uint AT_ONCE = 4u;    // splats whose alphas are computed together

shared uint s_active[2];    // of this batch and the next: some pixel is not done

struct Pixel {
    vec3 color;
    float transmittance;
    float light;            // the transmittance while the pixel goes on, then 0
    uint last;
};

// Buckets are numbered so that no prefix sum is needed: tile t has the numbers from offset[t] / BUCKET_SIZE + t up to the next tile's, at least as
// many as it has buckets. Saved states skip each tile's first bucket, so theirs start at offset[t] / BUCKET_SIZE.
void name_buckets(uint tile, uint begin, uint end) {
    uint last = end / BUCKET_SIZE + tile + 1u;
    for (uint b = begin / BUCKET_SIZE + tile + gl_LocalInvocationID.x; b < last; b += RASTER_LANES) tile_from_bucket[b] = tile;
}

// Blends a splat, number k of the tile, into a pixel that it covers with this alpha. Alpha 0 changes nothing. Without branches: subgroups rarely agree.
void blend(inout Pixel p, float alpha, vec3 color, uint k) {
    precise float next = p.light * (1.0 - alpha);
    bool goes_on = next > TRANSMITTANCE_THRESHOLD;
    float weight = goes_on ? alpha * p.light : 0.0;
    // Written as fma, so that no compiler chooses: with and without KEEP_STATES, in one band or many, the same bytes.
    p.color = fma(color, vec3(weight), p.color);
    p.transmittance = goes_on ? next : p.transmittance;
    p.light = goes_on ? next : 0.0;
    p.last = goes_on && alpha > 0.0 ? k + 1u : p.last;
}

bool all_done(Pixel pixels[LANE_PIXELS]) {
    bool done = true;
    for (uint p = 0u; p < LANE_PIXELS; p++) done = done && pixels[p].light == 0.0;
    return done;
}

// Blends splats of the batch, the subgroup's share of them from number `first` on: AT_ONCE at a time, because one alone is a chain of dependent
// operations. Splat 0 of the batch is number k of the tile.
void blend_touching(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, uvec2 todo, uint k) {
    while ((todo.x | todo.y) != 0u) {
        float alpha[AT_ONCE][LANE_PIXELS];
        vec3 color[AT_ONCE];
        uint j[AT_ONCE];
        for (uint i = 0u; i < AT_ONCE; i++) {
            bool more = (todo.x | todo.y) != 0u;
            j[i] = first;
            if (more) j[i] += take_lowest(todo);
            Splat s = batch_splat(j[i]);
            color[i] = s.color;
            for (uint p = 0u; p < LANE_PIXELS; p++) {
                float raw;
                bool hit = covers(s, to_mean(s.mean2d, centre, p), raw) && more;
                alpha[i][p] = hit ? min(MAX_ALPHA, raw) : 0.0;
            }
        }
        for (uint i = 0u; i < AT_ONCE; i++)
            for (uint p = 0u; p < LANE_PIXELS; p++) blend(pixels[p], alpha[i][p], color[i], k + j[i]);
    }
}

// The same for WHOLE_COLUMNS, one splat at a time: eight pixels are chains enough.
void blend_columns(inout Pixel pixels[LANE_PIXELS], vec2 centre, uint first, uint todo, uint k) {
    if (todo == 0u) return;
    Splat own = own_splat(first);
    uvec2 left = uvec2(todo, 0u);
    for (;;) {
        uint j = take_lowest(left);
        Splat s = splat_of_lane(own, j);
        for (uint p = 0u; p < LANE_PIXELS; p++) {
            float raw;
            bool hit = covers(s, to_mean(s.mean2d, centre, p), raw);
            blend(pixels[p], hit ? min(MAX_ALPHA, raw) : 0.0, s.color, k + first + j);
        }
        if (left.x == 0u) break;
    }
}

// The lane's splats of the batch that begins at isect `first`.
void fetch(inout Projected next[LANE_SPLATS], uint first, uint end) {
    for (uint i = 0u; i < LANE_SPLATS; i++) {
        uint at = first + raster_lane() + i * RASTER_LANES;
        if (at < end) next[i] = projected[splat_from_slot[slot_from_isect[at]]];
    }
}

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint lane = raster_lane();
    uint begin = tile_offsets[tile], end = tile_offsets[tile + 1u];
    if (KEEP_STATES) name_buckets(tile, begin, end);
    uvec2 tile_xy = uvec2(tile % v.tile_width, tile / v.tile_width);
    ivec2 rows = band_rows(v.tile_height, pc.band, pc.n_bands);
    if (int(tile_xy.y) < rows.x || int(tile_xy.y) >= rows.y) return;
    uvec2 corner = tile_xy * TILE_SIZE;
    Pixel pixels[LANE_PIXELS];
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        uvec2 at = corner + lane_pixel(lane, p);
        pixels[p] = Pixel(vec3(0.0), 1.0, at.x < v.width && at.y < v.height ? 1.0 : 0.0, 0u);
    }
    vec2 centre = vec2(corner + lane_pixel(lane, 0u)) + 0.5;
    uint quadrants = own_quadrants();
    if (lane < 2u) s_active[lane] = 0u;
    Projected next[LANE_SPLATS];
    fetch(next, begin, end);
    uint parity = 0u;
    for (uint first = begin; begin < end;) {
        barrier();  // the batch before has been blended
        uint n = min(BATCH, end - first);
        for (uint i = 0u; i < LANE_SPLATS; i++)
            if (lane + i * RASTER_LANES < n) store_splat(lane + i * RASTER_LANES, next[i], vec2(corner));
        if (!all_done(pixels)) s_active[parity] = 1u;
        barrier();
        if (s_active[parity] == 0u) break;
        parity ^= 1u;
        if (lane == 0u) s_active[parity] = 0u;
        fetch(next, first + BATCH, end);
        if (KEEP_STATES && first > begin && (first - begin) % BUCKET_SIZE == 0u) {
            uint state = (begin / BUCKET_SIZE + (first - begin) / BUCKET_SIZE - 1u) * TILE_PIXELS;
            for (uint p = 0u; p < LANE_PIXELS; p++) {
                uvec2 at = lane_pixel(lane, p);
                states[state + at.y * TILE_SIZE + at.x] = vec4(pixels[p].color, pixels[p].transmittance);
            }
        }
        for (uint g = 0u; !subgroupAll(all_done(pixels));) {
            uvec2 todo = touching(g, n, quadrants);
            if (WHOLE_COLUMNS) blend_columns(pixels, centre, g, todo.x, first - begin);
            else blend_touching(pixels, centre, g, todo, first - begin);
            g += SUBGROUP_SIZE;
            if (g >= n) break;
        }
        first += BATCH;
        if (first >= end) break;
    }
    for (uint p = 0u; p < LANE_PIXELS; p++) {
        uvec2 pixel = corner + lane_pixel(lane, p);
        if (pixel.x >= v.width || pixel.y >= v.height) continue;
        uint at = pixel.y * v.width + pixel.x;
        render[at] = vec4(pixels[p].color + pixels[p].transmittance * v.background, pixels[p].transmittance);
        if (KEEP_STATES) last_ids[at] = pixels[p].last;
    }
}
