// The state of a pixel that rasterize keeps for the backward pass: colour so far, transmittance. Four floats in two
// words of `states`, or packed in one.
#ifndef STATES_GLSL
#define STATES_GLSL

// A packed number has 16 bits: the upper ones of the float32 x + zero, less those of zero, rounded to nearest. It is
// off by half a unit, 2^-13 (x + zero), at most. Zero comes back as zero; the largest colour is 64, the largest
// transmittance 4, less a unit. What is more becomes that, what is less than 0, which no colour is, becomes 0, and what
// is no number one of these two. The transmittance's zero is less than that at which pixels stop.
const float COLOR_ZERO = 0.0009765625;      // 2^-10
const float LIGHT_ZERO = 6.103515625e-5;    // 2^-14
const uint DROPPED = 11u;

uint pack_number(float x, float zero) {
    uint up = floatBitsToUint(max(x, 0.0) + zero);
    return min((up - floatBitsToUint(zero) + (1u << DROPPED - 1u)) >> DROPPED, 0xFFFFu);
}

float unpack_number(uint number, float zero) {
    return uintBitsToFloat((number << DROPPED) + floatBitsToUint(zero)) - zero;
}

uvec2 pack_state(vec4 state) {
    return uvec2(pack_number(state.r, COLOR_ZERO) | pack_number(state.g, COLOR_ZERO) << 16u,
                 pack_number(state.b, COLOR_ZERO) | pack_number(state.a, LIGHT_ZERO) << 16u);
}

vec4 unpack_state(uvec2 word) {
    return vec4(unpack_number(word.x & 0xFFFFu, COLOR_ZERO), unpack_number(word.x >> 16u, COLOR_ZERO),
                unpack_number(word.y & 0xFFFFu, COLOR_ZERO), unpack_number(word.y >> 16u, LIGHT_ZERO));
}

#endif
