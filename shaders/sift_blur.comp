#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// sift_blur convolves the rows or the columns of a plane with a Gaussian. Pixels beyond the border are as those at it.
//   reads plane; writes blurred
// A workgroup makes a tile: 96 pixels of 32 rows, or of 32 columns.
#include "dispatch.glsl"
#include "sift.glsl"

layout(local_size_x = 256) in;

layout(constant_id = 1) const bool VERTICAL = false;

const uint MOST_RADIUS = 13u;
const uint TILE_X = VERTICAL ? 32u : 96u;
const uint TILE_Y = VERTICAL ? 96u : 32u;
const uint LOADED = VERTICAL ? 32u : 96u + 2u * MOST_RADIUS;     // pixels of a row in shared memory
const uint NEXT = VERTICAL ? LOADED : 1u;

layout(push_constant, scalar) uniform Push {
    uint width;
    uint rows;
    uint pitch;
    uint radius;        // at most MOST_RADIUS
    float weights[14];  // of pixels so far away
} pc;
layout(binding = 0, scalar) readonly buffer Plane { float plane[]; };       // [rows][pitch]
layout(binding = 1, scalar) writeonly buffer Blurred { float blurred[]; };  // likewise

shared float s_pixel[32u * (96u + 2u * MOST_RADIUS)];

void main() {
    uint lid = gl_LocalInvocationID.x, across = div_up(pc.width, TILE_X);
    uvec2 own = uvec2(lid % 32u, lid / 32u), size = uvec2(pc.width, pc.rows);
    uvec2 first = uvec2(group_index() % across, group_index() / across) * uvec2(TILE_X, TILE_Y);
    uvec2 margin = VERTICAL ? uvec2(0u, pc.radius) : uvec2(pc.radius, 0u);
    if (first.y >= size.y) return;
    for (uint y = own.y; y < TILE_Y + 2u * margin.y; y += 8u)
        for (uint x = own.x; x < TILE_X + 2u * margin.x; x += 32u) {
            uvec2 from = uvec2(clamp(ivec2(first + uvec2(x, y)) - ivec2(margin), ivec2(0), ivec2(size) - 1));
            s_pixel[y * LOADED + x] = plane[from.y * pc.pitch + from.x];
        }
    barrier();
    for (uint y = own.y; y < TILE_Y; y += 8u)
        for (uint x = own.x; x < TILE_X; x += 32u) {
            uvec2 to = first + uvec2(x, y);
            if (to.x >= size.x || to.y >= size.y) continue;
            uint middle = (y + margin.y) * LOADED + x + margin.x;
            float sum = pc.weights[0] * s_pixel[middle];
            for (uint k = 1u; k <= pc.radius; k++)
                sum += pc.weights[k] * (s_pixel[middle - k * NEXT] + s_pixel[middle + k * NEXT]);
            blurred[to.y * pc.pitch + to.x] = sum;
        }
}
