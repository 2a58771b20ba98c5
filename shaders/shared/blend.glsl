// Splats in the image and their gradients.
#ifndef BLEND_GLSL
#define BLEND_GLSL
#include "const.glsl"

// The gradient of one splat's projection, of one tile or of all.
struct ProjectedGrad {
    vec2 mean2d;
    vec3 conic;
    float opacity;
    vec3 color;
};

// With DEPTH the inverse of camera z is a fourth channel that is blended, and has no background.
#ifdef DEPTH
#define COLOR vec4
#else
#define COLOR vec3
#endif

// A projected splat as it is stored, shape and paint without extents.
struct Blended {
    vec2 mean2d;    // px
    vec3 conic;     // inverse 2D covariance xx, xy, yy, px^-2
    float opacity;  // activated, compensated when antialiased
    COLOR color;    // max(SH + 0.5, 0)
};

// A projected splat as it is blended.
struct Splat {
    vec2 mean2d;        // px
    vec3 form;          // sigma / ln 2 = form.x dx^2 + form.y dx dy + form.z dy^2
    float log_opacity;  // to base 2
    COLOR color;
};

// What the pixels of a column have in common, d = mean2d - pixel centre: log2(alpha) = level - dy (slope + form.z dy).
struct Column {
    float level;
    float slope;
};

const float LOG2_ALPHA_THRESHOLD = -7.994353436858858;

const float LOG2_NOTHING = -1e30;   // log_opacity of what covers no pixel

// What is no ellipse by more than rounding covers nothing: sigma would be below zero somewhere.
Splat splat_of(Blended p) {
    if (!(p.conic.x > 0.0 && p.conic.z > 0.0 &&
              p.conic.x * p.conic.z * 1.00001 >= p.conic.y * p.conic.y && p.opacity > 0.0))
        return Splat(p.mean2d, vec3(0.0), LOG2_NOTHING, p.color);
    // 1 / ln 2
    return Splat(p.mean2d, 1.4426950408889634 * vec3(0.5 * p.conic.x, p.conic.y, 0.5 * p.conic.z),
                 log2(p.opacity), p.color);
}

// The forward and the backward pass must take the same decisions, so both call these three. A `precise` operation can
// neither be contracted nor moved to another place of a sum, but MoltenVK makes a function of it that Metal's compiler
// does not optimise. So only those are precise that could be: the products here go into an fma alone.
Column column_of(Splat s, float dx) {
    return Column(fma(-(s.form.x * dx), dx, s.log_opacity), s.form.y * dx);
}

// Whether a splat covers a pixel of the column; alpha = opacity exp(-sigma), before the ceiling. Sigma is below zero by
// rounding alone.
bool covers(Splat s, Column c, float dy, out float alpha) {
    float power = fma(-fma(s.form.z, dy, c.slope), dy, c.level);
    alpha = exp2(power);
    return power >= LOG2_ALPHA_THRESHOLD;
}

// What a splat of this alpha absorbs of a pixel's light, and what it leaves.
void absorb(float alpha, float light, out float weight, out float left) {
    precise float part = alpha * light;
    precise float rest = light - part;
    weight = part;
    left = rest;
}

#endif
