// Reading of parameters from a chunk in mixed precision by the rows of a full one. The includer declares chunk and
// pc.chunk_splats.
#ifndef MIXED_ROWS_GLSL
#define MIXED_ROWS_GLSL
#include "mixed.glsl"

// Parameter r < ROW_SH.
float row(uint r, uint i) { return uintBitsToFloat(chunk[r * pc.chunk_splats + i]); }

// Parameters r, r + 1 and r + 2: all below ROW_SH, or an SH coefficient's three channels, which lie in two words.
vec3 row3(uint r, uint i) {
    if (r < ROW_SH) return vec3(row(r, i), row(r + 1u, i), row(r + 2u, i));
    uint at = half_row(r - ROW_SH) * pc.chunk_splats + i;
    uint a = chunk[at], b = chunk[at + pc.chunk_splats];
    return (r - ROW_SH & 1u) == 0u ? vec3(half_value(a & 0xFFFFu), half_value(a >> 16), half_value(b & 0xFFFFu))
                                   : vec3(half_value(a >> 16), half_value(b & 0xFFFFu), half_value(b >> 16));
}

#endif
