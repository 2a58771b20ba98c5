// Adam for batches of views, whose constants depend on their number.
#ifndef ADAM_BATCH_GLSL
#define ADAM_BATCH_GLSL
#include "params.glsl"

float beta1, rest1, beta2, rest2, eps;
#include "adam_step.glsl"

void begin_adam(StepParams p) {
    beta1 = p.batch_beta1;
    rest1 = p.batch_rest1;
    beta2 = p.batch_beta2;
    rest2 = p.batch_rest2;
    eps = p.batch_eps;
    inv_bias1 = p.inv_bias1;
    inv_sqrt_bias2 = p.inv_sqrt_bias2;
}

#endif
