// A chunk in mixed precision: words [rows][chunk_splats]. K = (degree + 1)^2, P = ROW_SH + 3 K parameters.
//   [0, ROW_SH)                 parameters that are not SH coefficients: float32
//   [ROW_SH, + ceil(3 K / 2))   SH coefficients as IEEE halves, two a word, the lower bits first
//   then P                      moments of a parameter as bfloat16, the first in the lower bits, the second in the
//   upper
//   then STAT_ROWS              statistics: float32
// Conversions are written with integers, so that every device gives the same bits. Rounding is stochastic, up or down
// in proportion to the distance: nearest rounding would swallow every change smaller than half a unit in the last
// place, which most steps of Adam are.
#ifndef MIXED_GLSL
#define MIXED_GLSL
#include "const.glsl"

// Row of SH coefficient j, which lies in the upper half of the word if j is odd.
uint half_row(uint j) { return ROW_SH + j / 2u; }

// First row of moments, given P.
uint moment_row(uint n_params) { return half_row(n_params - ROW_SH + 1u); }

// The value of a half.
float half_value(uint h) {
    uint a = h & 0x7FFFu;
    // Exponents are 112 apart; those of infinities and NaN 224.
    uint bits = (a << 13) + (a < 0x7C00u ? 0x38000000u : 0x70000000u);
    // multiples of 2^-24: exact, and no denormal of float32
    if (a < 0x400u) bits = floatBitsToUint(float(a) * 5.9604644775390625e-8);
    return uintBitsToFloat(bits | (h & 0x8000u) << 16);
}

// x as a half, rounded by 16 random bits. What is finite stays finite: 65504 is the most. Exact on average, but for
// what is below 2^-14, of which less than 2^-40 is cut off.
uint round_half(float x, uint random) {
    uint bits = floatBitsToUint(x);
    uint sign = (bits >> 16) & 0x8000u;
    uint a = bits & 0x7FFFFFFFu;
    if (a >= 0x7F800000u) return sign | (a == 0x7F800000u ? 0x7C00u : 0x7FFFu);
    if (a >= 0x477FE000u) return sign | 0x7BFFu;
    if (a >= 0x38800000u) return sign | (a - 0x38000000u + (random >> 3)) >> 13;
    // Multiples of 2^-24, with 16 bits behind the point.
    uint shift = 126u - (a >> 23);
    uint whole = a & 0x7FFFFFu | 0x800000u;
    uint fixed_point = shift < 16u ? whole << (16u - shift) : whole >> min(shift - 16u, 31u);
    return sign | (fixed_point + random) >> 16;
}

// The values of the moments in a word.
float first_moment(uint word) { return uintBitsToFloat(word << 16); }
float second_moment(uint word) { return uintBitsToFloat(word & 0xFFFF0000u); }

// x as bfloat16, rounded by 16 random bits. What is finite stays finite.
uint round_bfloat(float x, uint random) {
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7F800000u) == 0x7F800000u) return bits >> 16 | ((bits & 0x7FFFFFu) != 0u ? 0x40u : 0u);
    uint up = (bits + random) >> 16;
    return up - ((up & 0x7F80u) == 0x7F80u ? 1u : 0u);
}

// Random bits of a row of a splat, from a word of Philox that belongs to splat and step: rows are Weyl's sequence from
// there, mixed by the hash lowbias32 (Wellons 2018, hash-prospector). It is a bijection, so each row's bits are as
// uniform as the word.
uint row_bits(uint word, uint r) {
    uint x = word + r * 0x9E3779B9u;
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    return x ^ x >> 16;
}

#endif
