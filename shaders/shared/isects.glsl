// The number of isects of a band, once it is known. The includer declares params, counters and dispatch_args.
#ifndef ISECTS_GLSL
#define ISECTS_GLSL
#include "params.glsl"
#include "fail.glsl"
#include "dispatch.glsl"

// Sets the dispatch arguments for n isects and returns n. More than the capacity fail the unit, loudly, and leave it
// without isects.
uint set_isects(uint n, uint capacity) {
    if (n > capacity) {
        fail(FAILED_ISECTS, n);
        n = 0u;
    }
    counters[N_ISECTS_MAX] = max(counters[N_ISECTS_MAX], n);
    dispatch_args[ARGS_SORT_ISECTS] = fold_groups(div_up(n, SORT_BLOCK));
    // rasterize numbers its buckets so that this many are enough, however large they are: see name_buckets there.
    dispatch_args[ARGS_BUCKETS] = fold_groups(
        n == 0u ? 0u : n / LEAST_BUCKET + params[0].view.tile_width * params[0].view.tile_height);
    return n;
}

#endif
