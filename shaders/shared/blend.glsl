// One splat at one pixel. rasterize and rasterize_bwd must take the same decisions, so both call this, and nothing in it may be contracted.
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

// d = mean2d - pixel centre. Returns the unclamped alpha opacity * exp(-sigma), or 0 where the splat is skipped; falloff = exp(-sigma).
float splat_alpha(vec2 d, vec3 conic, float opacity, out float falloff) {
    precise float sigma = fma(0.5 * conic.x * d.x, d.x, fma(0.5 * conic.z * d.y, d.y, conic.y * d.x * d.y));
    falloff = exp(-sigma);
    precise float alpha = opacity * falloff;
    return sigma >= 0.0 && alpha >= ALPHA_THRESHOLD ? alpha : 0.0;
}

#endif
