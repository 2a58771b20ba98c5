#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// find_places finds which place of the scene each square of the current band shows: where the ray of its middle pixel
// meets the splat behind which less than half of the light is left, or far away.
//   reads params tile_offsets slot_from_isect splat_from_slot projected depth_keys; writes places
// An invocation a square.
#include "params.glsl"
#include "blend.glsl"
#include "camera.glsl"
#include "tiles.glsl"
#include "dispatch.glsl"
#include "places.glsl"

layout(local_size_x = 64) in;

layout(push_constant, scalar) uniform Push {
    uint band;
    uint n_bands;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Offsets { uint tile_offsets[]; };           // [n_tiles + 1]
layout(binding = 2, scalar) readonly buffer Isects { uint slot_from_isect[]; };         // [n_isects]
layout(binding = 3, scalar) readonly buffer SlotSplats { uint splat_from_slot[]; };     // [n_isects]
layout(binding = 4, scalar) readonly buffer ProjectedB { Projected projected[]; };      // [N]
layout(binding = 5, scalar) readonly buffer Keys { uint depth_keys[]; };                // [N]
layout(binding = 6, scalar) writeonly buffer Places { uint places[]; };                 // [n_tiles][TILE_SQUARES]

const float FAR = 1000.0;           // world units
const float WIDEST_ANGLE = 1.5;     // of a fisheye, whose rays at right angles to the axis have no depth

float surface_depth(vec2 centre, uint begin, uint end) {
    float light = 1.0;
    for (uint i = begin; i < end; i++) {
        uint id = splat_from_slot[slot_from_isect[i]];
        Splat s = splat_of(projected[id]);
        float alpha;
        vec2 d = s.mean2d - centre;
        if (!covers(s, column_of(s, d.x), d.y, alpha)) continue;
        light *= 1.0 - min(MAX_ALPHA, alpha);
        if (light < 0.5) return uintBitsToFloat(depth_keys[id]);
    }
    return FAR;
}

// The ray of a pixel, with camera z 1.
vec3 ray_of(View v, vec2 centre) {
    vec2 p = (centre - v.center) / v.focal;
    if (v.camera_model == CAMERA_FISHEYE) {
        float angle = clamp(length(p), 1e-6, WIDEST_ANGLE);
        p *= tan(angle) / angle;
    }
    return vec3(p, 1.0);
}

void main() {
    View v = params[0].view;
    uint square = global_index(), tile = square / TILE_SQUARES;
    if (tile >= v.tile_width * v.tile_height) return;
    uvec2 tile_xy = uvec2(tile % v.tile_width, tile / v.tile_width);
    ivec2 rows = band_rows(v.tile_height, pc.band, pc.n_bands);
    if (int(tile_xy.y) < rows.x || int(tile_xy.y) >= rows.y) return;
    uvec2 pixel = min(tile_xy * TILE_SIZE + square_corner(square) + SQUARE / 2u, uvec2(v.width, v.height) - 1u);
    vec2 centre = vec2(pixel) + 0.5;
    float z = surface_depth(centre, tile_offsets[tile], tile_offsets[tile + 1u]);
    vec3 point = transpose(view_rotation(v)) * (z * ray_of(v, centre) - v.trans);
    places[square] = place_of(point, z / v.focal.x);
}
