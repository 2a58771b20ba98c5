#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// project_bwd_adam_views_depth is project_bwd_adam_views for steps that compare depth.
//   reads params counters index_of v_views v_beside_views; reads and writes chunk
// One invocation a splat of one chunk.
// variant mixed: the chunk is in mixed precision (mixed.glsl)
#define DEPTH
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"
#include "word.glsl"

layout(local_size_x = 128) in;
// The statistic is of absolute gradients (Ye et al. 2024).
layout(constant_id = 1) const bool ABSGRAD = false;
// Means are moved at random after the step (Kheradmand et al. 2024, equation 8).
layout(constant_id = 2) const bool NOISE = false;
// Views of the batch, 1 to 16.
layout(constant_id = 3) const uint N_VIEWS = 2u;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_params;      // parameter rows P
    uint index_stride;  // elements of index_of for a view
    uint grad_stride;   // elements of v_views and v_abs_views for a view
} pc;
// [N_VIEWS]; but for their views all like the first
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
// [N_VIEWS][index_stride]: the splat's number among those of its view, or CULLED
layout(binding = 2, scalar) readonly buffer IndexOf { uint index_of[]; };
// [N_VIEWS][grad_stride]; no colour where its clamp holds
layout(binding = 3, scalar) readonly buffer VViews { ProjectedGrad v_views[]; };
layout(binding = 4, scalar) buffer Chunk { WORD chunk[]; };                              // [rows][chunk_splats]
// [N_VIEWS][grad_stride] absolute gradients of the mean with ABSGRAD, dL/d(1 / depth)
layout(binding = 5, scalar) readonly buffer VBeside { vec3 v_beside_views[]; };
#define v_abs_views v_beside_views
#include "adam_batch.glsl"
#ifdef MIXED
#include "state_mixed.glsl"
#else
#include "state.glsl"
#endif
#include "optimise_views.glsl"
