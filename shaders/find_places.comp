#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// find_places finds which place of the scene each square of the current band shows: where the ray of its middle pixel
// meets the splat behind which less than half of the light is left, or far away.
//   reads params tile_offsets slot_from_isect splat_from_slot shapes paints depth_keys; writes places
// A workgroup a tile. All its invocations load a batch of the tile's splats into shared memory, and the first
// TILE_SQUARES go through the batch, one for each square: a lane that fetched the splats itself would wait for memory
// at each.
#include "params.glsl"
#include "blend.glsl"
#include "camera.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"
#include "places.glsl"
#include "ray.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 2, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 3, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 4, scalar) readonly buffer Shapes { vec4 shapes[]; };                  // [N][2], a Shape
layout(binding = 5, scalar) readonly buffer Paints { vec4 paints[]; };                  // [N] opacity, colour
layout(binding = 6, scalar) readonly buffer Keys { uint depth_keys[]; };                // [N]
layout(binding = 7, scalar) writeonly buffer Places { uint places[]; };                 // [n_tiles][TILE_SQUARES]

#include "fetch.glsl"

const float FAR = 1000.0;           // world units

const uint BATCH = gl_WorkGroupSize.x;

shared vec4 s_mean[BATCH];  // mean2d, log_opacity, depth
shared vec3 s_form[BATCH];
shared uint s_found;        // squares whose light has been halved

void load(uint isect) {
    uint id = splat_from_slot[slot_from_isect[isect]], at = gl_LocalInvocationID.x;
    Splat s = splat_of(blended_splat(id));
    s_mean[at] = vec4(s.mean2d, s.log_opacity, uintBitsToFloat(depth_keys[id]));
    s_form[at] = s.form;
}

// Goes through n splats; the depth of the one behind which less than half of the light is left, or FAR.
float walk(vec2 centre, uint n, inout float light) {
    for (uint k = 0u; k < n; k++) {
        vec4 mean = s_mean[k];
        Splat s = Splat(mean.xy, s_form[k], mean.z, vec3(0.0));
        float alpha;
        vec2 d = s.mean2d - centre;
        if (!covers(s, column_of(s, d.x), d.y, alpha)) continue;
        light *= 1.0 - min(MAX_ALPHA, alpha);
        if (light < 0.5) return mean.w;
    }
    return FAR;
}

// Called by all invocations of a workgroup. The first TILE_SQUARES get the depths that their pixels show.
float surface_depth(vec2 centre, uint begin, uint end) {
    uint lid = gl_LocalInvocationID.x;
    float light = 1.0, depth = FAR;
    if (lid == 0u) s_found = 0u;
    for (uint first = begin; first < end; first += BATCH) {
        if (first + lid < end) load(first + lid);
        barrier();
        if (lid < TILE_SQUARES && light >= 0.5) {
            depth = walk(centre, min(BATCH, end - first), light);
            if (light < 0.5) atomicAdd(s_found, 1u);
        }
        barrier();
        if (s_found == TILE_SQUARES) break;
    }
    return depth;
}

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uvec2 tile_xy = uvec2(tile % v.tile_width, tile / v.tile_width);
    ivec2 rows = band_rows(v.tile_height, pc.band, pc.n_bands);
    if (int(tile_xy.y) < rows.x || int(tile_xy.y) >= rows.y) return;
    uint square = tile * TILE_SQUARES + gl_LocalInvocationID.x % TILE_SQUARES;
    uvec2 pixel = min(tile_xy * TILE_SIZE + square_corner(square) + SQUARE / 2u, uvec2(v.width, v.height) - 1u);
    vec2 centre = vec2(pixel) + 0.5;
    float z = surface_depth(centre, tile_offsets[tile], tile_offsets[tile + 1u]);
    vec3 point = transpose(view_rotation(v)) * (z * ray_of(v, centre) - v.trans);
    if (gl_LocalInvocationID.x < TILE_SQUARES) places[square] = place_of(point, z / v.focal.x);
}
