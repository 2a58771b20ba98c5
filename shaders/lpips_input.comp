#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// lpips_input turns rows of a picture into the input of an image network: colours times gain plus offset, a channel
// after the other (the scaling layer of Zhang et al. 2018, The Unreasonable Effectiveness of Deep Features as a
// Perceptual Metric).
//   reads map_rows picture; writes features
// One invocation a pixel.
#include "bands.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    vec3 gain;
    vec3 offset;
    uint width;
    uint ring;
} pc;
layout(binding = 0, scalar) readonly buffer Rows { MapRows map_rows[]; };       // [layers], the input first
layout(binding = 1, scalar) readonly buffer Picture { vec3 picture[]; };        // [count][width] the band's rows
layout(binding = 2, scalar) writeonly buffer Features { float features[]; };    // [ring][3][width]

void main() {
    uint i = global_index();
    if (i >= map_rows[0].count * pc.width) return;
    uint slot = (map_rows[0].first + i / pc.width) % pc.ring, x = i % pc.width;
    vec3 c = picture[i] * pc.gain + pc.offset;
    for (uint k = 0u; k < 3u; k++) features[(3u * slot + k) * pc.width + x] = c[k];
}
