// What n copies of a splat must look like together to look like the splat alone (Kheradmand et al. 2024, equation 9).
#ifndef RELOCATION_GLSL
#define RELOCATION_GLSL
#include "const.glsl"

// Returns the factor of the scales, and the opacity of each copy, for an activated opacity and what is left of 1.
float relocate(float opacity, float rest, uint copies, float min_opacity, out float fresh) {
    uint n = clamp(copies, 1u, MAX_RELOCATIONS);
    fresh = max(1.0 - pow(rest, 1.0 / float(n)), min_opacity);
    // sum over a = 1..n, k = 0..a-1 of C(a-1, k) (-1)^k fresh^(k+1) / sqrt(k+1)
    float denominator = 0.0;
    for (uint a = 1u; a <= n; a++) {
        float binomial = 1.0, power = fresh, sign_k = 1.0;
        for (uint k = 0u; k < a; k++) {
            denominator += binomial * sign_k * power / sqrt(float(k + 1u));
            binomial = binomial * float(a - 1u - k) / float(k + 1u);
            power *= fresh;
            sign_k = -sign_k;
        }
    }
    return opacity / denominator;
}

// The same for stored values: returns the logit opacity of each copy, and what to add to the log scales. Opacities keep
// OPACITY_MARGIN from 0 and 1, where scales vanish, the logit is infinite, and the sum above cancels to nothing.
float relocate_stored(float logit, uint copies, float min_opacity, out float log_factor) {
    float opacity = clamp(1.0 / (1.0 + exp(-logit)), OPACITY_MARGIN, 1.0 - OPACITY_MARGIN);
    float rest = clamp(1.0 / (1.0 + exp(logit)), OPACITY_MARGIN, 1.0 - OPACITY_MARGIN);
    float fresh;
    log_factor = log(relocate(opacity, rest, copies, min_opacity, fresh));
    fresh = min(fresh, 1.0 - OPACITY_MARGIN);
    return log(fresh / (1.0 - fresh));
}

#endif
