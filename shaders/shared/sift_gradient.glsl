// Gradients of a band of an octave. The includer declares pc.band and levels.
#ifndef SIFT_GRADIENT_GLSL
#define SIFT_GRADIENT_GLSL
#include "sift.glsl"

// Whether a pixel of the octave has a gradient here: one at its border has none.
bool has_gradient(ivec2 at) {
    int row = at.y - int(pc.band.first);
    return at.x > 0 && at.y > 0 && at.x + 1 < int(pc.band.width) && at.y + 1 < int(pc.band.height) && row > 0 &&
        row + 1 < int(pc.band.rows);
}

// Its length and its angle in [0, TAU).
vec2 gradient_at(ivec2 at, uint level) {
    uint i = (level * pc.band.rows + uint(at.y) - pc.band.first) * pc.band.pitch + uint(at.x);
    vec2 g = 0.5 * vec2(levels[i + 1u] - levels[i - 1u], levels[i + pc.band.pitch] - levels[i - pc.band.pitch]);
    if (g == vec2(0.0)) return vec2(0.0);   // atan is undefined
    float angle = atan(g.y, g.x);
    return vec2(length(g), angle < 0.0 ? angle + TAU : angle);
}

#endif
