// A step of Adam (Kingma and Ba 2015) on one parameter or several. The includer declares beta1, rest1 = 1 - beta1,
// beta2, rest2 = 1 - beta2 and eps.
#ifndef ADAM_STEP_GLSL
#define ADAM_STEP_GLSL

// Bias corrections of the step, set by begin_adam(): read once, because a store to any buffer may change what is behind
// `params` as far as a compiler knows.
float inv_bias1;
float inv_sqrt_bias2;

// Steps the moments and returns what to subtract from the parameter.
#define ADAM(T) T adam(inout T m, inout T v, T g, float lr) { \
        m = beta1 * m + rest1 * g; \
        v = beta2 * v + rest2 * (g * g); \
        return lr * inv_bias1 * m / (sqrt(v) * inv_sqrt_bias2 + eps); \
    }
ADAM(float)
ADAM(vec2)
ADAM(vec3)
ADAM(vec4)

#endif
