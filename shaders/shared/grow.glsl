// How refinement ranks splats. Both keys are in [0, 2^31) and smaller goes first; the sort drops CULLED.
#ifndef GROW_GLSL
#define GROW_GLSL
#include "const.glsl"

// Of a splat that may grow: the larger the score, a number that is not negative, the earlier.
uint grow_key(float score) { return 0x7FFFFFFFu - floatBitsToUint(abs(score)); }

// Of a splat that may go: the smaller the opacity, the earlier.
uint prune_key(float opacity) { return floatBitsToUint(abs(opacity)); }

// Logit of 1 - sqrt(1 - o), the opacity with which two equal splats hide what one of opacity o hid (Bulo et al. 2024,
// section 3.3). Written with s = sqrt(1 - o), so that small opacities keep their digits; beyond +-80 the logit of o
// says nothing more.
float revised_logit(float logit) {
    float x = clamp(logit, -80.0, 80.0);
    float s = sqrt(1.0 / (1.0 + exp(x)));
    float o = 1.0 / (1.0 + exp(-x));
    return log(o / ((1.0 + s) * s));
}

#endif
