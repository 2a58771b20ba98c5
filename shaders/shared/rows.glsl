// Reading of parameters by their rows, in either precision. The includer declares chunk and pc.chunk_splats.
#ifndef ROWS_GLSL
#define ROWS_GLSL
#ifdef MIXED
#include "mixed_rows.glsl"
#else

float row(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }
vec3 row3(uint r, uint i) { return vec3(row(r, i), row(r + 1u, i), row(r + 2u, i)); }

// SH coefficients k to k + 3, a column each, or coefficient k alone. k is even.
struct Sh4 {
    mat4x3 x;
};

Sh4 load_sh4(uint k, uint i, bool all) {
    uint r = ROW_SH + 3u * k;
    if (!all) return Sh4(mat4x3(row3(r, i), vec3(0.0), vec3(0.0), vec3(0.0)));
    return Sh4(mat4x3(row3(r, i), row3(r + 3u, i), row3(r + 6u, i), row3(r + 9u, i)));
}

mat4x3 values(Sh4 four) { return four.x; }

#endif
#endif
