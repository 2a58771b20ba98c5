#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// sift_halve makes rows of the next octave of a level that is blurred as its first one is to be: every second pixel.
//   reads plane; writes halved
// One invocation a pixel.
#include "dispatch.glsl"
#include "sift.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    SiftBand band;      // of the plane
    uint width;         // of the next octave
    uint pitch;
    uint first;         // row that is made first
    uint rows;          // that are made
} pc;
layout(binding = 0, scalar) readonly buffer Plane { float plane[]; };       // [band.rows][band.pitch]
layout(binding = 1, scalar) writeonly buffer Halved { float halved[]; };    // [height][pitch], the whole octave

void main() {
    uint i = global_index(), x = i % pc.width, y = i / pc.width;
    if (y >= pc.rows) return;
    y += pc.first;
    halved[y * pc.pitch + x] = plane[(2u * y - pc.band.first) * pc.band.pitch + 2u * x];
}
