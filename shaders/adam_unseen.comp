#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// adam_unseen does what project_bwd_adam leaves with UNSEEN_APART: it steps Adam on workgroups of splats of which the
// view sees none. Nothing that such a step needs waits for the picture, so it runs beside the passes that make it, and
// fills the device where they leave it idle. A failed unit changes nothing.
//   reads params counters depth_keys; reads and writes chunk
// One invocation a splat of one chunk; a dispatch takes one workgroup in n_parts.
// variant mixed: the chunk is in mixed precision (mixed.glsl)
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"
#include "word.glsl"

layout(local_size_x = 128) in;
// Means are moved at random after the step (Kheradmand et al. 2024, equation 8).
layout(constant_id = 1) const bool NOISE = false;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_params;      // parameter rows P
    uint part;
    uint n_parts;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };                // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };               // [N]
layout(binding = 3, scalar) buffer Chunk { WORD chunk[]; };                                 // [rows][chunk_splats]
#include "adam.glsl"
#ifdef MIXED
#include "state_mixed.glsl"
#else
#include "state.glsl"
#endif
#include "optimise.glsl"
#include "seen.glsl"

void coefficients_bwd(uint k, uint i, bool all, float lr_first, float lr) {
    Four four = load_four(k, i, all);
    step_four(k, i, all, four, mat4x3(0.0), lr_first, lr);
}

void main() {
    uint i = (group_index() * pc.n_parts + pc.part) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    uint id = pc.first_id + i;
    uint n = counters[N_ACTIVE], failed = counters[FAILED];
    bool exists = i < pc.chunk_splats && id < n && failed == 0u;
    if (group_sees(exists && depth_keys[id] != CULLED) || !exists) return;
    begin_step(id);
    color_bwd(i);
    penalised_bwd(i, load_geometry(0u, i), no_geometry(), penalty_of(n));
}
