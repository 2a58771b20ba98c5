// Rows of a model chunk, for kernels that move whole splats. The includer declares pc.n_state, the number of rows of
// parameters and moments.
#ifndef CHUNK_GLSL
#define CHUNK_GLSL
#include "const.glsl"

uint n_rows() { return pc.n_state + STAT_ROWS; }
uint stat_row(uint stat) { return pc.n_state + stat; }

#endif
