// Whether a splat is made of numbers. The includer declares row() and MIXED, the precision of its chunk.
#ifndef FINITE_GLSL
#define FINITE_GLSL
#include "dispatch.glsl"

bool is_finite_half(uint h) { return (h & 0x7C00u) != 0x7C00u; }

// Every row up to sh0 by itself, because max() may swallow a NaN.
bool is_finite_splat(uint i) {
    bool good = true;
    for (uint r = 0u; r < ROW_SH + (MIXED ? 0u : 3u); r++) good = good && is_finite(row(r, i));
    if (MIXED) {
        uint a = floatBitsToUint(row(ROW_SH, i)), b = floatBitsToUint(row(ROW_SH + 1u, i));
        good = good && is_finite_half(a) && is_finite_half(a >> 16) && is_finite_half(b);
    }
    return good;
}

#endif
