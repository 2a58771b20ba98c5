#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// pack makes bytes of a picture: red, green, blue and alpha of a pixel in a word, the lowest byte first.
//   reads render; writes packed_pixels
// One invocation a pixel.
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n;             // pixels
} pc;
// [n] colour with background, final transmittance
layout(binding = 0, scalar) readonly buffer Render { vec4 render[]; };
layout(binding = 1, scalar) writeonly buffer Packed { uint packed_pixels[]; };     // [n]

// 0 to 1 in 255 steps, rounded to nearest; what lies outside is clamped, NaN is 0.
uint to_byte(float x) {
    return x > 0.0 ? uint(min(255.0 * x + 0.5, 255.0)) : 0u;
}

void main() {
    uint i = global_index();
    if (i >= pc.n) return;
    vec4 p = render[i];
    packed_pixels[i] = to_byte(p.r) | to_byte(p.g) << 8u | to_byte(p.b) << 16u | to_byte(1.0 - p.a) << 24u;
}
