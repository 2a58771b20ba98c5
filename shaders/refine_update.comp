#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_update changes what stays where it is: a split parent becomes its first child, and all statistics start again.
//   reads params counters actions; reads and writes chunk
// One invocation a splat of one chunk. Runs after every refine_place, which still reads the parents.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_params;      // rows of parameters
    uint n_state;       // rows of parameters and moments
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Actions { uint actions[]; };        // [N]
layout(binding = 3, scalar) buffer Chunk { float chunk[]; };                    // [rows][chunk_splats]
#include "chunk.glsl"

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }
#include "split.glsl"
#include "grow.glsl"

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= min(counters[N_ACTIVE], counters[N_AFTER]) || counters[FAILED] != 0u) return;
    uint action = actions[id];
    if (action == ACTION_PRUNE) return;     // a hole: refine_place has filled it with fresh statistics
    for (uint r = 0u; r < STAT_ROWS; r++) chunk[stat_row(r) * pc.chunk_splats + i] = 0.0;
    if (action != ACTION_KEEP && params[0].revised_opacity != 0u) {
        uint at = ROW_LOGIT_OPACITIES * pc.chunk_splats + i;
        chunk[at] = revised_logit(chunk[at]);
    }
    if (action != ACTION_SPLIT) return;
    vec3 mean = child_mean(params[0], id, i, 0u);
    for (uint k = 0u; k < 3u; k++) {
        chunk[(ROW_MEANS + k) * pc.chunk_splats + i] = mean[k];
        chunk[(ROW_LOG_SCALES + k) * pc.chunk_splats + i] -= SPLIT_SHRINK;
    }
    for (uint r = pc.n_params; r < pc.n_state; r++) chunk[r * pc.chunk_splats + i] = 0.0;
}
