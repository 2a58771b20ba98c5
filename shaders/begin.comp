#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// begin starts a unit of work: it sets the counts of this unit and the dispatch arguments that depend on the number of splats.
// If an earlier unit failed, the unit is empty: no splats, no work.
//   reads params counters; writes counters dispatch_args
// One invocation.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 1) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };               // [N_COUNTERS]
layout(binding = 2, scalar) writeonly buffer Args { uvec3 dispatch_args[]; };    // [N_ARGS]

void main() {
    uint n = counters[FAILED] == 0u ? counters[N_SPLATS] : 0u;
    for (uint i = N_ACTIVE; i < N_COUNTERS; i++) counters[i] = 0u;
    counters[N_ACTIVE] = n;
    for (uint i = 0u; i < N_ARGS; i++) dispatch_args[i] = uvec3(0u, 1u, 1u);
    dispatch_args[ARGS_SORT_SPLATS] = fold_groups(div_up(n, SORT_BLOCK));
    dispatch_args[ARGS_SCAN_SPLATS] = fold_groups(div_up(n, SCAN_BLOCK));
    dispatch_args[ARGS_SPLATS] = fold_groups(div_up(n, GROUP));
    if (counters[FAILED] != 0u) return;
    uint n_tiles = params[0].view.tile_width * params[0].view.tile_height;
    dispatch_args[ARGS_TILES] = fold_groups(n_tiles);
    dispatch_args[ARGS_TILE_OFFSETS] = fold_groups(div_up(n_tiles + 1u, GROUP));
}
