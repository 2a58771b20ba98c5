// Dispatch arguments that depend on the number of splats, and those of the image. The includer declares params and
// dispatch_args.
#ifndef ARGS_GLSL
#define ARGS_GLSL
#include "params.glsl"
#include "dispatch.glsl"

// Sets them for n splats and all others to no work. With empty, the image is no work either.
void set_args(uint n, bool empty) {
    for (uint i = 0u; i < N_ARGS; i++) dispatch_args[i] = uvec3(0u, 1u, 1u);
    dispatch_args[ARGS_SORT_SPLATS] = fold_groups(div_up(n, SORT_BLOCK));
    dispatch_args[ARGS_SCAN_SPLATS] = fold_groups(div_up(n, SCAN_BLOCK));
    dispatch_args[ARGS_SPLATS] = fold_groups(div_up(n, GROUP));
    if (empty) return;
    uint n_tiles = params[0].view.tile_width * params[0].view.tile_height;
    dispatch_args[ARGS_TILES] = fold_groups(n_tiles);
    dispatch_args[ARGS_TILE_OFFSETS] = fold_groups(div_up(n_tiles + 1u, ORDER_TILES));
}

#endif
