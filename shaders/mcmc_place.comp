#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// mcmc_place writes the copies whose source is in one chunk and whose place is in another (the host runs every pair of
// chunks). Copies start without moments and statistics.
//   reads params counters sources multiplicity hole_list source; writes dest
// One invocation a copy. Nobody reads a place that is written.
#include "params.glsl"
#include "dispatch.glsl"
#include "relocation.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;      // of the source chunk
    uint chunk_splats;
    uint n_params;      // rows of parameters
    uint n_state;       // rows of parameters and moments
    uint dest_first_id; // of the destination chunk
    uint dest_splats;
    uint round;         // ROUND_*
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Sources { uint sources[]; };                // [copies]
layout(binding = 3, scalar) readonly buffer Multiplicity { uint multiplicity[]; };      // [N]
layout(binding = 4, scalar) readonly buffer HoleList { uint hole_list[]; };             // [n_holes]
layout(binding = 5, scalar) readonly buffer Source { uint source[]; };                  // [rows][chunk_splats]
layout(binding = 6, scalar) writeonly buffer Dest { uint dest[]; };                     // [rows][dest_splats]
#include "chunk.glsl"
#include "copies.glsl"

void main() {
    uint k = global_index();
    if (k >= n_copies(pc.round) || counters[FAILED] != 0u) return;
    uint id = sources[k];
    uint i = id - pc.first_id;                           // wraps to a huge number below the chunk, and for NO_SOURCE
    uint j = copy_home(pc.round, k) - pc.dest_first_id;  // likewise
    if (i >= pc.chunk_splats || j >= pc.dest_splats || id == NO_SOURCE) return;
    for (uint r = 0u; r < n_rows(); r++)
        dest[r * pc.dest_splats + j] = r < pc.n_params ? source[r * pc.chunk_splats + i] : 0u;
    float log_factor;
    float logit = uintBitsToFloat(source[ROW_LOGIT_OPACITIES * pc.chunk_splats + i]);
    dest[ROW_LOGIT_OPACITIES * pc.dest_splats + j] =
        floatBitsToUint(relocate_stored(logit, multiplicity[id] + 1u, params[0].prune_opacity, log_factor));
    for (uint r = ROW_LOG_SCALES; r < ROW_LOG_SCALES + 3u; r++)
        dest[r * pc.dest_splats + j] = floatBitsToUint(uintBitsToFloat(source[r * pc.chunk_splats + i]) + log_factor);
}
