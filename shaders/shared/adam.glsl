// Adam as every published 3DGS recipe sets it.
#ifndef ADAM_GLSL
#define ADAM_GLSL
#include "params.glsl"

const float beta1 = ADAM_BETA1, rest1 = 1.0 - ADAM_BETA1;
const float beta2 = ADAM_BETA2, rest2 = 1.0 - ADAM_BETA2;
const float eps = ADAM_EPS;
#include "adam_step.glsl"

void begin_adam(StepParams p) {
    inv_bias1 = p.inv_bias1;
    inv_sqrt_bias2 = p.inv_sqrt_bias2;
}

#endif
