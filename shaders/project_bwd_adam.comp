#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_bwd_adam takes the gradients of each splat's projection to its parameters, steps Adam on them in place (Kingma and Ba 2015) and adds to
// the strategy's statistics. A failed unit changes nothing.
//   reads params counters depth_keys v_projected; reads and writes chunk
// One invocation a splat of one chunk.
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"

layout(local_size_x = 256) in;

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

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE] || counters[FAILED] != 0u) return;
    StepParams p = params[0];
    if (depth_keys[id] == CULLED) {
        splat_unseen(p, i);
        return;
    }
    ProjectedGrad g = v_projected[id];
    // Gradient of the mean in units of half the image (Kerbl et al. 2023, densification).
    uint stat = (3u * pc.n_params + STAT_GRAD2D) * pc.chunk_splats + i;
    chunk[stat] += length(g.mean2d * 0.5 * vec2(p.view.width, p.view.height));
    chunk[stat + pc.chunk_splats] += 1.0;
    splat_bwd(p, i, g);
}
