// A step of Adam (Kingma and Ba 2015) on one parameter or several. The includer declares beta1, rest1 = 1 - beta1,
// beta2, rest2 = 1 - beta2 and eps.
#ifndef ADAM_STEP_GLSL
#define ADAM_STEP_GLSL

// Bias corrections of the step, set by begin_adam(): read once, because a store to any buffer may change what is behind
// `params` as far as a compiler knows.
float inv_bias1;
float inv_sqrt_bias2;

// Up to here a first moment is 0, without a sign. A compiler may leave out the sum with a gradient that it knows to be
// 0, which makes 0 of -0, and may keep numbers that another kernel's code loses: adam_unseen and project_bwd_adam must
// step an unseen splat alike, to the bit.
const float LEAST = 1.1754944e-38;  // float32's least normal number

// Steps the moments and returns what to subtract from the parameter.
#define ADAM(T, HELD) T adam(inout T m, inout T v, T g, float lr) { \
        m = beta1 * m + rest1 * g; \
        m = HELD; \
        v = beta2 * v + rest2 * (g * g); \
        return lr * inv_bias1 * m / (sqrt(v) * inv_sqrt_bias2 + eps); \
    }
ADAM(float, abs(m) <= LEAST ? 0.0 : m)
ADAM(vec2, mix(m, vec2(0.0), lessThanEqual(abs(m), vec2(LEAST))))
ADAM(vec3, mix(m, vec3(0.0), lessThanEqual(abs(m), vec3(LEAST))))
ADAM(vec4, mix(m, vec4(0.0), lessThanEqual(abs(m), vec4(LEAST))))

#endif
