// Reading of parameters from a chunk in mixed precision by the rows of a full one. The includer declares chunk and
// pc.chunk_splats.
#ifndef MIXED_ROWS_GLSL
#define MIXED_ROWS_GLSL
#include "mixed.glsl"

// Parameter r < ROW_SH.
float row(uint r, uint i) { return uintBitsToFloat(chunk[r * pc.chunk_splats + i]); }

// Parameters r, r + 1 and r + 2, all below ROW_SH.
vec3 row3(uint r, uint i) { return vec3(row(r, i), row(r + 1u, i), row(r + 2u, i)); }

uint load_word(uint r, uint i) { return chunk[r * pc.chunk_splats + i]; }
uvec3 load_words(uint r, uint i) { return uvec3(load_word(r, i), load_word(r + 1u, i), load_word(r + 2u, i)); }

// SH coefficients k to k + 3: twelve halves in six words. One alone fills a word and the lower half of the next; both
// begin a word, because k is even.
struct Sh4 {
    uvec3 a, b;
};

// Coefficients k to k + 3, or coefficient k alone.
Sh4 load_sh4(uint k, uint i, bool all) {
    uint r = half_row(3u * k);
    if (!all) return Sh4(uvec3(load_word(r, i), load_word(r + 1u, i), 0u), uvec3(0u));
    return Sh4(load_words(r, i), load_words(r + 3u, i));
}

// Their values, a column each.
mat4x3 values(Sh4 f) {
    return mat4x3(low_half(f.a.x), high_half(f.a.x), low_half(f.a.y), high_half(f.a.y), low_half(f.a.z),
                  high_half(f.a.z), low_half(f.b.x), high_half(f.b.x), low_half(f.b.y), high_half(f.b.y),
                  low_half(f.b.z), high_half(f.b.z));
}

#endif
