#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_bwd_adam takes the gradients of each splat's projection to its parameters, steps Adam on them in place
// (Kingma and Ba 2015) and adds to the strategy's statistics. The regularisers' gradients come in here, for seen and
// unseen splats, and the noise of MCMC. A failed unit changes nothing.
//   reads params counters depth_keys v_projected v_abs_mean2d paints; reads and writes chunk
// One invocation a splat of one chunk.
// variant mixed: the chunk is in mixed precision (mixed.glsl)
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"
#include "word.glsl"

layout(local_size_x = 128) in;
// The statistic is of absolute gradients (Ye et al. 2024).
layout(constant_id = 1) const bool ABSGRAD = false;
// Means are moved at random after the step (Kheradmand et al. 2024, equation 8).
layout(constant_id = 2) const bool NOISE = false;
// Workgroups whose splats the view sees none of are left to adam_unseen.
layout(constant_id = 3) const bool UNSEEN_APART = false;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_params;      // parameter rows P
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };                // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };               // [N]
layout(binding = 3, scalar) readonly buffer VProjected { ProjectedGrad v_projected[]; };    // [N]
layout(binding = 4, scalar) buffer Chunk { WORD chunk[]; };                                 // [rows][chunk_splats]
// [N] with ABSGRAD; else not read
layout(binding = 5, scalar) readonly buffer VAbs { vec2 v_abs_mean2d[]; };
layout(binding = 6, scalar) readonly buffer Paints { vec4 paints[]; };                      // [N] opacity, colour
#include "adam.glsl"
#ifdef MIXED
#include "state_mixed.glsl"
#else
#include "state.glsl"
#endif
#include "optimise_view.glsl"
