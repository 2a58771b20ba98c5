#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// mcmc_relocation computes the opacity and scales of a splat that is replaced by `ratios` copies of itself so that the rendering stays the same
// (Kheradmand et al. 2024, equation 9).
//   reads opacities scales ratios; writes new_opacities new_scales
// One invocation a splat.
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n;
    float min_opacity;
} pc;
layout(binding = 0, scalar) readonly buffer Opacities { float opacities[]; };           // [n] activated
layout(binding = 1, scalar) readonly buffer Scales { vec3 scales[]; };                  // [n] activated
layout(binding = 2, scalar) readonly buffer Ratios { uint ratios[]; };                  // [n] 1..51
layout(binding = 3, scalar) writeonly buffer NewOpacities { float new_opacities[]; };   // [n]
layout(binding = 4, scalar) writeonly buffer NewScales { vec3 new_scales[]; };          // [n]

void main() {
    uint i = global_index();
    if (i >= pc.n) return;
    uint n = clamp(ratios[i], 1u, 51u);
    float opacity = opacities[i];
    float fresh = max(1.0 - pow(1.0 - opacity, 1.0 / float(n)), pc.min_opacity);
    // sum over a = 1..n, k = 0..a-1 of C(a-1, k) (-1)^k fresh^(k+1) / sqrt(k+1)
    float denominator = 0.0;
    for (uint a = 1u; a <= n; a++) {
        float binomial = 1.0, power = fresh, sign_k = 1.0;
        for (uint k = 0u; k < a; k++) {
            denominator += binomial * sign_k * power / sqrt(float(k + 1u));
            binomial = binomial * float(a - 1u - k) / float(k + 1u);
            power *= fresh;
            sign_k = -sign_k;
        }
    }
    new_opacities[i] = fresh;
    new_scales[i] = scales[i] * (opacity / denominator);
}
