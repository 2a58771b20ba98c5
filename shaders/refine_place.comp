#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// refine_place writes the new splats and the splats that move, from one chunk into one chunk (the host runs every pair
// of chunks).
//   reads params counters actions new_offset hole_offset hole_list source; writes dest
// One invocation a splat of the source chunk. It writes only places that no splat lives in.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint first_id;      // of the source chunk
    uint chunk_splats;
    uint n_params;      // rows of parameters
    uint n_state;       // rows of parameters and moments
    uint dest_first_id; // of the destination chunk
    uint dest_splats;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Actions { uint actions[]; };        // [N]
layout(binding = 3, scalar) readonly buffer New { uint new_offset[]; };         // [N] exclusive sums
layout(binding = 4, scalar) readonly buffer Holes { uint hole_offset[]; };      // [N] exclusive sums
layout(binding = 5, scalar) readonly buffer HoleList { uint hole_list[]; };
layout(binding = 6, scalar) readonly buffer Source { uint source[]; };          // [rows][chunk_splats]
layout(binding = 7, scalar) writeonly buffer Dest { uint dest[]; };             // [rows][dest_splats]
#include "chunk.glsl"
#include "refine.glsl"
#include "grow.glsl"

float row(uint r, uint i) { return uintBitsToFloat(source[r * pc.chunk_splats + i]); }
#include "split.glsl"

bool in_dest(uint id) { return id >= pc.dest_first_id && id - pc.dest_first_id < pc.dest_splats; }

// Copies local splat i to global id `to`: the parameters, and moments or zeros. Statistics start again after a
// refinement.
void copy_splat(uint i, uint to, bool keep_moments) {
    uint j = to - pc.dest_first_id;
    for (uint r = 0u; r < pc.n_state; r++)
        dest[r * pc.dest_splats + j] = r < pc.n_params || keep_moments ? source[r * pc.chunk_splats + i] : 0u;
    for (uint r = 0u; r < STAT_ROWS; r++) dest[stat_row(r) * pc.dest_splats + j] = 0u;
}

void make_child(StepParams p, uint id, uint i, uint to, uint child) {
    uint j = to - pc.dest_first_id;
    vec3 mean = child_mean(p, id, i, child);
    for (uint k = 0u; k < 3u; k++) {
        dest[(ROW_MEANS + k) * pc.dest_splats + j] = floatBitsToUint(mean[k]);
        dest[(ROW_LOG_SCALES + k) * pc.dest_splats + j] = floatBitsToUint(row(ROW_LOG_SCALES + k, i) - SPLIT_SHRINK);
    }
}

// What is split or duplicated shares its opacity.
void revise_opacity(StepParams p, uint i, uint to) {
    if (p.revised_opacity != 0u)
        dest[ROW_LOGIT_OPACITIES * pc.dest_splats + (to - pc.dest_first_id)] =
            floatBitsToUint(revised_logit(row(ROW_LOGIT_OPACITIES, i)));
}

void main() {
    uint i = global_index();
    uint id = pc.first_id + i;
    if (i >= pc.chunk_splats || id >= counters[N_ACTIVE] || counters[FAILED] != 0u) return;
    StepParams p = params[0];
    uint action = actions[id];
    if (action == ACTION_PRUNE) return;
    if (action != ACTION_KEEP) {
        uint to = place(new_offset[id]);
        if (in_dest(to)) {
            copy_splat(i, to, false);
            if (action == ACTION_SPLIT) make_child(p, id, i, to, 1u);
            revise_opacity(p, i, to);
        }
    }
    uint home = new_home(id);
    if (home != id && in_dest(home)) {
        copy_splat(i, home, action != ACTION_SPLIT);
        if (action == ACTION_SPLIT) make_child(p, id, i, home, 0u);
        if (action != ACTION_KEEP) revise_opacity(p, i, home);
    }
}
