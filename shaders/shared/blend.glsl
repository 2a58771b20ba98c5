// Splats in the image and their gradients.
#ifndef BLEND_GLSL
#define BLEND_GLSL
#include "const.glsl"

// A projected splat: what blending needs.
struct Projected {
    vec2 mean2d;    // px
    vec3 conic;     // inverse 2D covariance xx, xy, yy, px^-2
    float opacity;  // activated, compensated when antialiased
    vec3 color;     // max(SH + 0.5, 0)
};

// The gradient of one splat's projection, of one tile or of all.
struct ProjectedGrad {
    vec2 mean2d;
    vec3 conic;
    float opacity;
    vec3 color;
};

// A projected splat as blending wants it.
struct Splat {
    vec2 mean2d;    // px
    vec3 form;      // sigma / ln 2 = form.x dx^2 + form.y dx dy + form.z dy^2
    float opacity;
    vec3 color;
};

Splat splat_of(Projected p) {
    return Splat(p.mean2d, 1.4426950408889634 * vec3(0.5 * p.conic.x, p.conic.y, 0.5 * p.conic.z), p.opacity, p.color);     // 1 / ln 2
}

// Whether a splat covers a pixel, d = mean2d - pixel centre; alpha = opacity exp(-sigma), before the ceiling. The forward and the backward pass must
// take the same decisions, so both call this, and nothing in it may be contracted.
bool covers(Splat s, vec2 d, out float alpha) {
    precise float power = fma(s.form.x * d.x, d.x, fma(s.form.z * d.y, d.y, s.form.y * d.x * d.y));
    precise float a = s.opacity * exp2(-power);
    alpha = a;
    return power >= 0.0 && a >= ALPHA_THRESHOLD;
}

#endif
