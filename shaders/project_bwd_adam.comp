#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_bwd_adam takes the gradients of each splat's projection to its parameters, steps Adam on them in place (Kingma and Ba 2015) and adds to
// the strategy's statistics. The regularisers' gradients come in here, for seen and unseen splats, and the noise of MCMC. A failed unit changes nothing.
//   reads params counters depth_keys v_projected v_abs_mean2d; reads and writes chunk
// One invocation a splat of one chunk.
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"

layout(local_size_x = 256) in;
// The statistic is of absolute gradients (Ye et al. 2024).
layout(constant_id = 1) const bool ABSGRAD = false;
// Means are moved at random after the step (Kheradmand et al. 2024, equation 8).
layout(constant_id = 2) const bool NOISE = false;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_params;      // parameter rows P
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };                // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };               // [N]
layout(binding = 3, scalar) readonly buffer VProjected { ProjectedGrad v_projected[]; };    // [N]
layout(binding = 4, scalar) buffer Chunk { float chunk[]; };                                // [rows][chunk_splats]
layout(binding = 5, scalar) readonly buffer VAbs { vec2 v_abs_mean2d[]; };                  // [N] with ABSGRAD; else not read

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }
vec3 row3(uint r, uint i) { return vec3(row(r, i), row(r + 1u, i), row(r + 2u, i)); }

void put(uint r, uint i, float g, float lr) {
    uint at = r * pc.chunk_splats + i;
    uint at_m = at + pc.n_params * pc.chunk_splats;
    uint at_v = at_m + pc.n_params * pc.chunk_splats;
    float m = ADAM_BETA1 * chunk[at_m] + (1.0 - ADAM_BETA1) * g;
    float v = ADAM_BETA2 * chunk[at_v] + (1.0 - ADAM_BETA2) * (g * g);
    chunk[at_m] = m;
    chunk[at_v] = v;
    chunk[at] -= lr * params[0].inv_bias1 * m / (sqrt(v) * params[0].inv_sqrt_bias2 + ADAM_EPS);
}
#include "project_bwd.glsl"
#include "philox.glsl"

// Adds noise to the mean: a normal sample times the covariance and the means' learning rate, as much as the opacity is near that of the dead.
void explore(StepParams p, uint id, uint i) {
    vec4 q = normalize(vec4(row3(ROW_QUATS, i), row(ROW_QUATS + 3u, i)));
    vec3 scales = exp(row3(ROW_LOG_SCALES, i));
    float opacity = sigmoid(row(ROW_LOGIT_OPACITY, i));
    float gate = p.noise_scale / (1.0 + exp(NOISE_STEEPNESS * (opacity - NOISE_OPACITY)));
    uvec4 r = philox(uvec4(id, p.step, DRAW_NOISE, 0u), uvec2(p.seed_lo, p.seed_hi));
    vec3 normal = vec3(normal_pair(r.x, r.y), normal_pair(r.z, r.w).x);
    mat3 rotation = quat_rotation(q);
    vec3 offset = rotation * (scales * scales * (normal * rotation)) * gate;
    for (uint k = 0u; k < 3u; k++) chunk[(ROW_MEANS + k) * pc.chunk_splats + i] += offset[k];
}

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE] || counters[FAILED] != 0u) return;
    StepParams p = params[0];
    // Both are means over all splats of the model.
    Penalty penalty = Penalty(p.opacity_reg / float(counters[N_ACTIVE]), p.scale_reg / (3.0 * float(counters[N_ACTIVE])));
    if (depth_keys[id] == CULLED) {
        splat_unseen(p, i, penalty);
    } else {
        ProjectedGrad g = v_projected[id];
        // Gradient of the mean in units of half the image (Kerbl et al. 2023, densification).
        uint stat = (3u * pc.n_params + STAT_GRAD2D) * pc.chunk_splats + i;
        vec2 v_mean2d = ABSGRAD ? v_abs_mean2d[id] : g.mean2d;
        chunk[stat] += length(v_mean2d * 0.5 * vec2(p.view.width, p.view.height));
        chunk[stat + pc.chunk_splats] += 1.0;
        splat_bwd(p, i, g, penalty);
    }
    if (NOISE) explore(p, id, i);
}
