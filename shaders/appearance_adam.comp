#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// appearance_adam sums the gradients of the photo's exposure, white balance and vignetting over the tiles in a fixed
// order, adds the penalty of vignetting, and steps Adam. A photo is trained on once an epoch, so each counts its own
// steps. Vignetting is its camera's, which the photos step one after another: a step's size is by the second moment of
// all of them, so that together they go down the mean gradient. With one of its own each photo would count alike,
// however little it has to say. A learning rate below 0 says that another device steps the photo, or none does yet.
//   reads params counters correction v_correction; reads and writes appearances
// One workgroup.
#include "appearance.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Correct { Correction correction[]; };       // [1]
layout(binding = 3, scalar) readonly buffer VCorrection { vec4 v_correction[]; };       // [n_tiles][7]
layout(binding = 4, scalar) buffer Appearances { Appearance appearances[]; };           // [n_views]
#include "lane_sum.glsl"

shared float s_v[28];           // as in v_correction, of all tiles
shared float s_bias[2];         // Adam's bias corrections
shared float s_was;             // the second one before the step

// gradient returns dL/d(number k).
float gradient(uint k) {
    if (k == 0u) return s_v[0];
    if (k >= VIGNETTING) return s_v[V_VIGNETTING + k - VIGNETTING];
    float latents[8];
    for (uint i = 0u; i < 8u; i++) latents[i] = correction[0].own[WHITE_BALANCE + i];
    mat3 colour, tangent;
    colour_of(latents, k - WHITE_BALANCE, colour, tangent);
    float sum = 0.0;
    for (uint i = 0u; i < 9u; i++) sum += tangent[i / 3u][i % 3u] * s_v[V_COLOUR + i];
    return sum;
}

void main() {
    if (counters[FAILED] != 0u || params[0].lr_appearance < 0.0) return;
    uint lid = gl_LocalInvocationID.x;
    uint n_tiles = params[0].view.tile_width * params[0].view.tile_height;
    uint n = params[0].vignetting != 0u ? 7u : 3u;
    for (uint first = 0u; first < n; first += 3u) {
        vec4 sum[3] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0));
        for (uint t = lid; t < n_tiles; t += 256u)
            for (uint i = 0u; i < min(3u, n - first); i++) sum[i] += v_correction[7u * t + first + i];
        sum_lanes(sum);
        if (lid < 12u && 4u * first + lid < 28u) s_v[4u * first + lid] = s_sum[256u * (lid / 4u)][lid % 4u];
    }
    uint id = params[0].view_id;
    float beta1 = params[0].appearance_beta1;
    float beta2 = params[0].appearance_beta2;
    if (lid == 0u) {
        // 1 - beta^t from 1 - beta^(t-1): no power, and exact where t is small.
        s_bias[0] = beta1 * appearances[id].bias1 + (1.0 - beta1);
        s_was = appearances[id].bias2;
        s_bias[1] = beta2 * s_was + (1.0 - beta2);
        appearances[id].bias1 = s_bias[0];
        appearances[id].bias2 = s_bias[1];
    }
    barrier();
    if (lid >= APPEARANCE_NUMBERS) return;
    bool learnt = (lid < WHITE_BALANCE ? params[0].exposure : lid < VIGNETTING ? params[0].white_balance :
        params[0].vignetting) != 0u;
    if (!learnt) return;
    float g = gradient(lid);
    if (lid >= VIGNETTING && (lid - VIGNETTING) % 5u < 2u)  // of the centre's squared distance, mean over channels
        g += params[0].vignetting_reg * 2.0 / 3.0 * correction[0].own[lid];
    float m = beta1 * appearances[id].m[lid] + (1.0 - beta1) * g;
    float v = beta2 * appearances[id].v[lid] + (1.0 - beta2) * (g * g);
    float second = v / s_bias[1];
    if (lid >= VIGNETTING) {
        float others = correction[0].seconds[lid - VIGNETTING] - appearances[id].v[lid];
        second = (others + v) / (correction[0].seconds[SECONDS - 1u] - s_was + s_bias[1]);
    }
    appearances[id].m[lid] = m;
    appearances[id].v[lid] = v;
    float rate = lid < VIGNETTING ? params[0].lr_appearance : params[0].lr_vignetting;
    appearances[id].own[lid] -= rate * (m / s_bias[0]) / (sqrt(second) + ADAM_EPS);
}
