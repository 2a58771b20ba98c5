// A chunk in mixed precision: words [rows][chunk_splats]. K = (degree + 1)^2, P = ROW_SH + 3 K parameters.
//   [0, ROW_SH)                 parameters that are not SH coefficients: float32
//   [ROW_SH, + ceil(3 K / 2))   SH coefficients as IEEE halves, two a word, the lower bits first
//   then P                      moments of a parameter as bfloat16, the first in the lower bits, the second in the
//   upper
//   then STAT_ROWS              statistics: float32
// Conversions are integer operations, comparisons, and additions and products that are exact or rounded once, so that
// every device gives the same bits. Rounding is stochastic, up or down in proportion to the distance: nearest rounding
// would swallow every change smaller than half a unit in the last place, which most steps of Adam are. What is finite
// stays finite, what is not stays so.
#ifndef MIXED_GLSL
#define MIXED_GLSL
#include "const.glsl"

// Row of SH coefficient j, which lies in the upper half of the word if j is odd.
uint half_row(uint j) { return ROW_SH + j / 2u; }

// First row of moments, given P.
uint moment_row(uint n_params) { return half_row(n_params - ROW_SH + 1u); }

// Halves are converted by way of a float32 with the half's exponent + 224 and its fraction, so that exponent 31, of
// infinities and NaN, is float32's 255. It is 2^112 times the half, or 2^97 + 2^111 times a subnormal one, which has no
// leading 1. The right one of the two is the smaller value of a half, and the larger float of a value.
const float HALF_UP = 5.192296858534828e33;         // 2^112
const float SUBNORMAL_UP = 2.596148429267414e33;    // 2^111
const float LEADING_ONE_UP = 1.5845632502852868e29; // 2^97
const float HALF_DOWN = 1.925929944387236e-34;      // 2^-112
const float SUBNORMAL_DOWN = 3.851859888774472e-34; // 2^-111
const float LEADING_ONE = 6.103515625e-5;           // 2^-14

// The value of the half in a word's upper bits. Every operation is exact.
float high_half(uint word) {
    float x = uintBitsToFloat(word >> 3 & 0x0FFFE000u | 0x70000000u);
    float magnitude = min(x * HALF_DOWN, x * SUBNORMAL_DOWN - LEADING_ONE);
    return uintBitsToFloat(floatBitsToUint(magnitude) | word & 0x80000000u);
}

float low_half(uint word) { return high_half(word << 16); }

// x as a half in the upper bits of a word whose lower bits mean nothing. It is rounded by the upper 13 random bits, as
// many as float32 has beyond a half. Finite numbers end at 65504. Exact on average, but for what is below 2^-14, which
// is first rounded to the nearest multiple of 2^-37.
uint round_half(float x, uint random) {
    uint bits = floatBitsToUint(x);
    float up = max(abs(x) * HALF_UP, abs(x) * SUBNORMAL_UP + LEADING_ONE_UP);
    uint most = max(bits & 0x7FFFFFFFu, 0x7F7FFFFFu); // below infinity unless x is not finite itself
    uint rounded = min(floatBitsToUint(up) + (random >> 19), most);
    return bitfieldInsert(bits, rounded << 3, 0, 31);
}

// A word of the upper bits of two.
uint pair(uint low, uint high) { return low >> 16 | high & 0xFFFF0000u; }

// The values of the moments in a word.
float first_moment(uint word) { return uintBitsToFloat(word << 16); }
float second_moment(uint word) { return uintBitsToFloat(word & 0xFFFF0000u); }

// From here on rounding up would lead to infinity: the largest bfloat16.
const float LARGEST_BFLOAT = 3.3895313892515355e38;

// The word of a first and a second moment, which is not negative: rounded by the lower and the upper 16 random bits, or
// towards 0 if one of them is beyond the largest bfloat16 or no number.
uint round_moments(float m, float v, uint random) {
    uint r = abs(m) < LARGEST_BFLOAT && v < LARGEST_BFLOAT ? random : 0u;
    return pair(floatBitsToUint(m) + (r & 0xFFFFu), floatBitsToUint(v) + (r >> 16));
}

// Random bits of a row of a splat, from a word of Philox that belongs to splat and step: Weyl's sequence from there.
// Adding a constant is a bijection of words, so each row's bits are as uniform as the word, which makes its rounding
// exact on average; and their halves, which round a first and a second moment, are as independent of each other as the
// word's. Coefficients take another word than moments. Rows of one splat do depend on each other within a step: both
// halves go round by the golden ratio and spread evenly over the rows. A sum over rows, as a colour is, has the right
// mean all the same, and the next step has another word.
const uint ROW_STEP = 0x9E379E37u;
uint row_bits(uint word, uint r) { return word + r * ROW_STEP; }

#endif
