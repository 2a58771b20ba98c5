#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// mcmc_update makes every splat of one chunk that was drawn one of its own copies. A relocation forgets the moments of
// the drawn, growth keeps them, as gsplat does.
//   reads params counters multiplicity; reads and writes chunk
// One invocation a splat. Runs after every mcmc_place, which still reads the sources.
#include "params.glsl"
#include "dispatch.glsl"
#include "relocation.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint n_params;      // rows of parameters
    uint n_state;       // rows of parameters and moments
    uint round;         // ROUND_*
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Multiplicity { uint multiplicity[]; };      // [N]
layout(binding = 3, scalar) buffer Chunk { float chunk[]; };                            // [rows][chunk_splats]

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE] || counters[FAILED] != 0u) return;
    uint drawn = multiplicity[id];
    if (drawn == 0u) return;
    uint at = ROW_LOGIT_OPACITIES * pc.chunk_splats + i;
    float log_factor;
    chunk[at] = relocate_stored(chunk[at], drawn + 1u, params[0].prune_opacity, log_factor);
    for (uint r = ROW_LOG_SCALES; r < ROW_LOG_SCALES + 3u; r++) chunk[r * pc.chunk_splats + i] += log_factor;
    if (pc.round == ROUND_GROW) return;
    for (uint r = pc.n_params; r < pc.n_state; r++) chunk[r * pc.chunk_splats + i] = 0.0;
}
