// A step of Adam (Kingma and Ba 2015) on one parameter or several.
#ifndef ADAM_GLSL
#define ADAM_GLSL
#include "params.glsl"

// Bias corrections of the step, set by begin_adam(): read once, because a store to any buffer may change what is behind `params` as far as a compiler knows.
float inv_bias1;
float inv_sqrt_bias2;

void begin_adam(StepParams p) {
    inv_bias1 = p.inv_bias1;
    inv_sqrt_bias2 = p.inv_sqrt_bias2;
}

// Steps the moments and returns what to subtract from the parameter.
#define ADAM(T) T adam(inout T m, inout T v, T g, float lr) { \
        m = ADAM_BETA1 * m + (1.0 - ADAM_BETA1) * g; \
        v = ADAM_BETA2 * v + (1.0 - ADAM_BETA2) * (g * g); \
        return lr * inv_bias1 * m / (sqrt(v) * inv_sqrt_bias2 + ADAM_EPS); \
    }
ADAM(float)
ADAM(vec3)
ADAM(vec4)

#endif
