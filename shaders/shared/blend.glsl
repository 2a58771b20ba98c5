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

#endif
