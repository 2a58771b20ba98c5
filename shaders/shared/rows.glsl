// Reading of parameters by their rows, in either precision. The includer declares chunk and pc.chunk_splats.
#ifndef ROWS_GLSL
#define ROWS_GLSL
#ifdef MIXED
#include "mixed_rows.glsl"
#else

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }
vec3 row3(uint r, uint i) { return vec3(row(r, i), row(r + 1u, i), row(r + 2u, i)); }

#endif
#endif
