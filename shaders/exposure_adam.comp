#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// exposure_adam sums the gradient of the photo's colour map over the tiles in a fixed order, adds the pull towards the
// identity, and steps Adam. A photo is trained on once an epoch, so each map counts its own steps. A learning rate
// below 0 says that another device steps the map.
//   reads params counters v_affine; reads and writes exposures
// One workgroup.
#include "params.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer VAffine { vec4 v_affine[]; };       // [n_tiles][3]
layout(binding = 3, scalar) buffer Exposures { Exposure exposures[]; };         // [n_views]

shared vec4 s_sum[3 * 256];     // [256][3]
shared float s_bias[2];         // Adam's bias corrections

void main() {
    if (counters[FAILED] != 0u || params[0].lr_exposure < 0.0) return;
    uint lid = gl_LocalInvocationID.x;
    uint n_tiles = params[0].view.tile_width * params[0].view.tile_height;
    vec4 sum[3] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0));
    for (uint t = lid; t < n_tiles; t += 256u)
        for (uint i = 0u; i < 3u; i++) sum[i] += v_affine[3u * t + i];
    for (uint i = 0u; i < 3u; i++) s_sum[3u * lid + i] = sum[i];
    for (uint half_size = 128u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size)
            for (uint i = 0u; i < 3u; i++) s_sum[3u * lid + i] += s_sum[3u * (lid + half_size) + i];
    }
    uint id = params[0].view_id;
    if (lid == 0u) {
        // 1 - beta^t from 1 - beta^(t-1): no power, and exact where t is small.
        s_bias[0] = ADAM_BETA1 * exposures[id].bias1 + (1.0 - ADAM_BETA1);
        s_bias[1] = ADAM_BETA2 * exposures[id].bias2 + (1.0 - ADAM_BETA2);
        exposures[id].bias1 = s_bias[0];
        exposures[id].bias2 = s_bias[1];
    }
    barrier();
    if (lid >= 12u) return;
    float x = exposures[id].affine[lid];
    float identity = lid % 5u == 0u ? 1.0 : 0.0;    // elements 0, 5 and 10 of [3][4]
    float g = s_sum[lid / 4u][lid % 4u] + params[0].exposure_reg * (x - identity) / 6.0;    // 2 / 12
    float m = ADAM_BETA1 * exposures[id].m[lid] + (1.0 - ADAM_BETA1) * g;
    float v = ADAM_BETA2 * exposures[id].v[lid] + (1.0 - ADAM_BETA2) * (g * g);
    exposures[id].m[lid] = m;
    exposures[id].v[lid] = v;
    exposures[id].affine[lid] = x - params[0].lr_exposure * (m / s_bias[0]) / (sqrt(v / s_bias[1]) + ADAM_EPS);
}
