#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_classify decides for every splat of one chunk: keep, duplicate, split or prune (adaptive density control, Kerbl et al. 2023, section 5,
// with the thresholds and order of gsplat's default strategy: growth first, pruning judges the result).
//   reads params counters chunk; writes actions new_offset hole_offset (as flags, summed next)
// One invocation a splat.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_params;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Chunk { float chunk[]; };           // [rows][chunk_splats]
layout(binding = 3, scalar) writeonly buffer Actions { uint actions[]; };       // [N] ACTION_*
layout(binding = 4, scalar) writeonly buffer New { uint new_offset[]; };        // [N] 1 where a splat is added
layout(binding = 5, scalar) writeonly buffer Holes { uint hole_offset[]; };     // [N] 1 where a splat goes
#include "chunk.glsl"

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE]) return;
    StepParams p = params[0];
    vec3 scales = exp(vec3(row(ROW_LOG_SCALES, i), row(ROW_LOG_SCALES + 1u, i), row(ROW_LOG_SCALES + 2u, i)));
    float scale = max(scales.x, max(scales.y, scales.z));
    float opacity = 1.0 / (1.0 + exp(-row(ROW_LOGIT_OPACITY, i)));
    float grad = row(stat_row(STAT_GRAD2D), i) / max(row(stat_row(STAT_COUNT), i), 1.0);
    uint action = ACTION_KEEP;
    if (grad > p.grow_grad2d) action = scale <= p.grow_scale ? ACTION_DUPLICATE : ACTION_SPLIT;
    float result = action == ACTION_SPLIT ? scale / 1.6 : scale;
    // A splat that is not a number goes too. Each row by itself, because max() may swallow a NaN.
    bool good = is_finite(scales.x) && is_finite(scales.y) && is_finite(scales.z);
    for (uint r = 0u; r < ROW_SH + 3u; r++) good = good && is_finite(row(r, i));
    good = good && opacity >= p.prune_opacity && (p.prune_scale == 0.0 || result <= p.prune_scale);
    if (!good) action = ACTION_PRUNE;
    actions[id] = action;
    new_offset[id] = action == ACTION_DUPLICATE || action == ACTION_SPLIT ? 1u : 0u;
    hole_offset[id] = action == ACTION_PRUNE ? 1u : 0u;
}
