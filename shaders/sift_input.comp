#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// sift_input makes rows of the first octave of a grey photo: as it is, or doubled, with means between its pixels.
//   reads photo; writes plane
// One invocation a pixel.
#include "dispatch.glsl"
#include "sift.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    SiftBand band;
    uint zoom;          // 1 or 2
    uint photo_width;
    uint photo_height;
} pc;
layout(binding = 0, scalar) readonly buffer Photo { uint photo[]; };    // [photo_height][photo_width] bytes
layout(binding = 1, scalar) writeonly buffer Plane { float plane[]; };  // [rows][pitch]

uint byte_at(uvec2 p) {
    p = min(p, uvec2(pc.photo_width, pc.photo_height) - 1u);
    uint i = p.y * pc.photo_width + p.x;
    return photo[i / 4u] >> i % 4u * 8u & 0xFFu;
}

void main() {
    uint i = global_index();
    uvec2 at = uvec2(i % pc.band.width, i / pc.band.width);
    if (at.y >= pc.band.rows) return;
    uvec2 to = at + uvec2(0u, pc.band.first), p = to / pc.zoom, q = p + to % pc.zoom;
    uint sum = byte_at(p) + byte_at(uvec2(q.x, p.y)) + byte_at(uvec2(p.x, q.y)) + byte_at(q);
    plane[at.y * pc.band.pitch + at.x] = float(sum) * (1.0 / 1020.0);
}
