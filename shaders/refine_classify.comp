#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_classify decides for every splat of one chunk: keep, duplicate, split or prune (adaptive density control,
// Kerbl et al. 2023, section 5, with the thresholds and order of gsplat's default strategy: growth first, pruning
// judges the result). With a target every splat with a statistic may grow, and pruning judges the splat as it is,
// because who grows is decided later.
//   reads params chunk; reads and writes counters; writes actions new_offset hole_offset (as flags) grow_keys
//   prune_keys
// One invocation a splat.
#include "params.glsl"
#include "dispatch.glsl"
#include "grow.glsl"

layout(local_size_x = 256) in;
// The chunk is in mixed precision: mixed.glsl.
layout(constant_id = 1) const bool MIXED = false;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_state;       // rows of parameters and moments
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Chunk { float chunk[]; };           // [rows][chunk_splats]
// [N] ACTION_*, before anything is limited
layout(binding = 3, scalar) writeonly buffer Actions { uint actions[]; };
layout(binding = 4, scalar) writeonly buffer New { uint new_offset[]; };        // [N] 0: refine_select says who grows
layout(binding = 5, scalar) writeonly buffer Holes { uint hole_offset[]; };     // [N] 1 where a splat goes
layout(binding = 6, scalar) writeonly buffer GrowKeys { uint grow_keys[]; };    // [N] rank of those that may grow
layout(binding = 7, scalar) writeonly buffer PruneKeys { uint prune_keys[]; };  // [N] rank of those that live
#include "chunk.glsl"

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }
#include "finite.glsl"

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE]) return;
    StepParams p = params[0];
    bool to_target = p.target_splats != 0u;
    vec3 scales = exp(vec3(row(ROW_LOG_SCALES, i), row(ROW_LOG_SCALES + 1u, i), row(ROW_LOG_SCALES + 2u, i)));
    float scale = max(scales.x, max(scales.y, scales.z));
    float opacity = 1.0 / (1.0 + exp(-row(ROW_LOGIT_OPACITIES, i)));
    float seen = row(stat_row(STAT_COUNT), i);
    float grad = row(stat_row(STAT_GRAD2D), i) / max(seen, 1.0);
    uint action = ACTION_KEEP;
    if (to_target ? seen > 0.0 && grad >= 0.0 : is_finite(grad) && grad > p.grow_grad2d)
        action = scale <= p.grow_scale ? ACTION_DUPLICATE : ACTION_SPLIT;
    float result = action == ACTION_SPLIT && !to_target ? scale / 1.6 : scale;
    // A splat that is not a number goes too.
    bool good = is_finite(scales.x) && is_finite(scales.y) && is_finite(scales.z) && is_finite_splat(i);
    good = good && opacity >= p.prune_opacity && (p.prune_scale == 0.0 || result <= p.prune_scale);
    if (!good) {
        action = ACTION_PRUNE;
        atomicAdd(counters[N_HOLES], 1u);
    }
    actions[id] = action;
    new_offset[id] = 0u;
    hole_offset[id] = action == ACTION_PRUNE ? 1u : 0u;
    grow_keys[id] = action == ACTION_DUPLICATE || action == ACTION_SPLIT ? grow_key(grad) : CULLED;
    prune_keys[id] = action == ACTION_PRUNE ? CULLED : prune_key(opacity);
}
