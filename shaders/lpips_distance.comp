#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// lpips_distance compares the features of two pictures: at each pixel they are divided by their length over the
// channels, and the squares of what they differ by are weighted and summed (Zhang et al. 2018, equation 1).
//   reads map_rows features_x features_y channel_weights; writes row_sums
// One workgroup a row, whose pixels are summed in a fixed order.
#include "bands.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint layer;         // in map_rows
    uint channels;
    uint width;
    uint ring;
    uint first_sum;     // of the layer, in row_sums
} pc;
layout(binding = 0, scalar) readonly buffer Rows { MapRows map_rows[]; };               // [layers]
layout(binding = 1, scalar) readonly buffer X { float features_x[]; };                  // [ring][channels][width]
layout(binding = 2, scalar) readonly buffer Y { float features_y[]; };                  // likewise
layout(binding = 3, scalar) readonly buffer Weights { float channel_weights[]; };       // [channels]
layout(binding = 4, scalar) writeonly buffer Sums { float row_sums[]; };                // [rows of all layers]

const float EPS = 1e-10;    // added to lengths

shared float s_sum[256];

float distance_at(uint at) {
    vec2 square = vec2(0.0);
    for (uint c = 0u; c < pc.channels; c++) {
        vec2 f = vec2(features_x[at + c * pc.width], features_y[at + c * pc.width]);
        square += f * f;
    }
    vec2 scale = 1.0 / (sqrt(square) + EPS);
    float sum = 0.0;
    for (uint c = 0u; c < pc.channels; c++) {
        // else contracted: equal features would differ
        precise float d = features_x[at + c * pc.width] * scale.x - features_y[at + c * pc.width] * scale.y;
        sum += channel_weights[c] * (d * d);
    }
    return sum;
}

void main() {
    uint row = group_index(), lid = gl_LocalInvocationID.x;
    if (row >= map_rows[pc.layer].count) return;
    uint y = map_rows[pc.layer].first + row;
    uint at = y % pc.ring * pc.channels * pc.width;
    float sum = 0.0;
    for (uint x = lid; x < pc.width; x += 256u) sum += distance_at(at + x);
    s_sum[lid] = sum;
    for (uint half_size = 128u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size) s_sum[lid] += s_sum[lid + half_size];
    }
    if (lid == 0u) row_sums[pc.first_sum + y] = s_sum[0];
}
