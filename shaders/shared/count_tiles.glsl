// Counting the tiles of splats, a workgroup of GROUP at a time. The includer declares what tile_rows.glsl asks for.
#ifndef COUNT_TILES_GLSL
#define COUNT_TILES_GLSL
#include "tile_rows.glsl"

shared uint s_tiles[GROUP];     // of each invocation's splat

// The tiles of splat `rank` in the band, 0 unless it exists. Every invocation must call it.
uint count_tiles(uint rank, bool exists) {
    uint lid = gl_LocalInvocationID.x;
    s_tiles[lid] = 0u;
    uint n_rows = take_splat(rank, exists);
    for (uint j = lid; j < n_rows; j += GROUP) {
        TileRow row = tile_row(j);
        atomicAdd(s_tiles[row.k], row.n_tiles);     // integers: the order cannot show
    }
    barrier();
    return s_tiles[lid];
}

#endif
