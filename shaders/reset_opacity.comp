#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// reset_opacity lowers every opacity to the ceiling and forgets its moments (Kerbl et al. 2023, section 5.2).
//   reads params counters; reads and writes chunk
// One invocation a splat of one chunk.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
    uint first_moments; // row of the opacity's first moment
    uint second_moments; // of its second; the same row where both lie in one word
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) buffer Chunk { float chunk[]; };                    // [rows][chunk_splats]

void main() {
    uint i = global_index();
    if (i >= pc.chunk_splats || pc.first_id + i >= counters[N_SPLATS] || counters[FAILED] != 0u) return;
    uint at = ROW_LOGIT_OPACITIES * pc.chunk_splats + i;
    chunk[at] = min(chunk[at], params[0].reset_logit);
    chunk[pc.first_moments * pc.chunk_splats + i] = 0.0;
    chunk[pc.second_moments * pc.chunk_splats + i] = 0.0;
}
