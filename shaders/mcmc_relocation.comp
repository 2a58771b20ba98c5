#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// mcmc_relocation computes the opacity and scales of a splat that is replaced by `ratios` copies of itself so that the
// rendering stays the same (Kheradmand et al. 2024, equation 9).
//   reads opacities scales ratios; writes new_opacities new_scales
// One invocation a splat.
#include "dispatch.glsl"
#include "relocation.glsl"

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
    float fresh;
    new_scales[i] = scales[i] * relocate(opacities[i], 1.0 - opacities[i], ratios[i], pc.min_opacity, fresh);
    new_opacities[i] = fresh;
}
