#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// project_bwd takes the gradients of each splat's projection to its parameters and stores them: project_bwd_adam
// without the optimiser.
//   reads params counters depth_keys v_projected paints chunk; writes v_params
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
// [P][chunk_splats]; rows above the degree are not written
layout(binding = 5, scalar) writeonly buffer VParams { float v_params[]; };
layout(binding = 6, scalar) readonly buffer Paints { vec4 paints[]; };                      // [N] opacity, colour

const bool NOISE = false;   // nor is there a far shell: penalties are none here, and nothing moves
#include "rows.glsl"
void put(uint r, uint i, float x) { v_params[r * pc.chunk_splats + i] = x; }

// SH coefficients, one a column.
struct Four {
    mat4x3 x;
};

Four load_four(uint k, uint i, bool all) {
    uint r = ROW_SH + 3u * k;
    if (!all) return Four(mat4x3(row3(r, i), vec3(0.0), vec3(0.0), vec3(0.0)));
    return Four(mat4x3(row3(r, i), row3(r + 3u, i), row3(r + 6u, i), row3(r + 9u, i)));
}

mat4x3 values(Four four) { return four.x; }

#include "splat_bwd.glsl"

void step_four(uint k, uint i, bool all, Four four, mat4x3 g, float lr_first, float lr) {
    uint r = ROW_SH + 3u * k;
    put3(r, i, g[0]);
    if (!all) return;
    put3(r + 3u, i, g[1]);
    put3(r + 6u, i, g[2]);
    put3(r + 9u, i, g[3]);
}

void step_geometry(uint i, Geometry x, Geometry g) { put_geometry(0u, i, g); }

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    uint n = counters[N_ACTIVE], failed = counters[FAILED];
    if (i >= pc.chunk_splats || id >= n || failed != 0u) return;
    // penalties count once, however many views there are
    splat_bwd(i, id, depth_keys[id] != CULLED, Penalty(0.0, 0.0));
}
