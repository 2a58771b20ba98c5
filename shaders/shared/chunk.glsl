// Rows of a model chunk, for kernels that move whole splats. The includer declares pc.chunk_splats and pc.n_params.
#ifndef CHUNK_GLSL
#define CHUNK_GLSL
#include "const.glsl"

uint n_rows() { return 3u * pc.n_params + STAT_ROWS; }
uint stat_row(uint stat) { return 3u * pc.n_params + stat; }

#endif
