// Which patches of a tile a splat's ellipse touches. The includer declares ALL_PATCHES, and a patch's PATCH_WIDTH and
// PATCH_HEIGHT.
#ifndef TOUCH_GLSL
#define TOUCH_GLSL
#include "const.glsl"
#include "blend.glsl"

// Whether the ellipse at which alpha falls to the threshold comes into a rectangle of pixel centres whose lowest one is
// at `low` relative to the mean. Never no where a pixel of it says yes: `slack` is more than sigma's rounding errors
// there. `tilt` is -conic.y over conic.x and conic.z.
bool touches(vec2 low, vec2 span, vec3 conic, vec2 tilt, float reach) {
    vec2 high = low + span;
    vec2 near = clamp(vec2(0.0), low, high);
    vec2 far = max(abs(low), abs(high));
    // Sigma is convex, so its least value is on one of the two sides nearest to the mean, unless the mean is inside.
    float y = clamp(tilt.y * near.x, low.y, high.y);
    float x = clamp(tilt.x * near.y, low.x, high.x);
    float at_side = 0.5 * (conic.x * near.x * near.x + conic.z * y * y) + conic.y * near.x * y;
    float at_end = 0.5 * (conic.x * x * x + conic.z * near.y * near.y) + conic.y * x * near.y;
    float slack = 0.001 + 2e-6 * (conic.x * far.x * far.x + conic.z * far.y * far.y);
    return !(min(at_side, at_end) > reach + slack);
}

// Patches of the tile with this corner that a splat may touch, a bit each. What is no ellipse touches all.
uint touched_patches(Blended s, vec2 corner) {
    bool ellipse = s.conic.x > 0.0 && s.conic.z > 0.0 && s.conic.x * s.conic.z > s.conic.y * s.conic.y;
    if (ALL_PATCHES || !ellipse) return (1u << PATCHES) - 1u;
    vec2 low = corner + 0.5 - s.mean2d, tilt = -s.conic.y / s.conic.xz;
    float reach = log(s.opacity / ALPHA_THRESHOLD);
    uint bits = 0u;
    for (uint p = 0u; p < PATCHES; p++)
        if (touches(low + vec2(p % 2u * PATCH_WIDTH, p / 2u * PATCH_HEIGHT), vec2(PATCH_WIDTH - 1u, PATCH_HEIGHT - 1u),
                    s.conic, tilt, reach)) bits |= 1u << p;
    return bits;
}

#endif
