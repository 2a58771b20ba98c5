#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_bwd takes the gradients of each splat's projection to its parameters and stores them: project_bwd_adam without the optimiser.
//   reads params counters depth_keys v_projected chunk; writes v_params
// One invocation a splat of one chunk.
#include "dispatch.glsl"
#include "params.glsl"
#include "blend.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;
    uint chunk_splats;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };                // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };               // [N]
layout(binding = 3, scalar) readonly buffer VProjected { ProjectedGrad v_projected[]; };    // [N]
layout(binding = 4, scalar) readonly buffer Chunk { float chunk[]; };                       // [rows][chunk_splats]
layout(binding = 5, scalar) writeonly buffer VParams { float v_params[]; };                 // [P][chunk_splats]; rows above the degree are not written

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }
vec3 row3(uint r, uint i) { return vec3(row(r, i), row(r + 1u, i), row(r + 2u, i)); }
void put(uint r, uint i, float g, float lr) { v_params[r * pc.chunk_splats + i] = g; }
#include "project_bwd.glsl"

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE] || counters[FAILED] != 0u) return;
    Penalty none = Penalty(0.0, 0.0);   // penalties count once, however many views there are
    if (depth_keys[id] == CULLED) splat_unseen(params[0], i, none);
    else splat_bwd(params[0], i, v_projected[id], none);
}
