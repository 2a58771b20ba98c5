// The children of a split: sampled from the parent's Gaussian, 1.6 times smaller (Kerbl et al. 2023, section 5.2). The
// includer declares row().
#ifndef SPLIT_GLSL
#define SPLIT_GLSL
#include "camera.glsl"
#include "philox.glsl"

const float SPLIT_SHRINK = 0.4700036292457356;  // ln 1.6

// Mean of child 0 or 1 of splat id, which is local number i of its chunk.
vec3 child_mean(StepParams p, uint id, uint i, uint child) {
    uvec4 r = philox(uvec4(id, p.step, child, 0u), uvec2(p.seed_lo, p.seed_hi));
    vec3 normal = vec3(normal_pair(r.x, r.y), normal_pair(r.z, r.w).x);
    vec4 q = normalize(vec4(row(ROW_QUATS, i), row(ROW_QUATS + 1u, i), row(ROW_QUATS + 2u, i), row(ROW_QUATS + 3u, i)));
    vec3 scales = exp(vec3(row(ROW_LOG_SCALES, i), row(ROW_LOG_SCALES + 1u, i), row(ROW_LOG_SCALES + 2u, i)));
    vec3 mean = vec3(row(ROW_MEANS, i), row(ROW_MEANS + 1u, i), row(ROW_MEANS + 2u, i));
    return mean + quat_rotation(q) * (scales * normal);
}

#endif
