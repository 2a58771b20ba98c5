// How rasterize and rasterize_bwd read a splat that they blend. The includer declares `projected`, and with DEPTH
// `params`, `depth_keys` and `depths`. The latter has two numbers for each pixel, the sum of weight / depth and the
// gradient of the loss by it, and behind them such sums where `states` has colours.
#ifndef FETCH_GLSL
#define FETCH_GLSL
#include "blend.glsl"

#ifdef DEPTH
Blended blended_splat(uint id) {
    Projected p = projected[id];
    return Blended(p.mean2d, p.conic, p.opacity, vec4(p.color, 1.0 / uintBitsToFloat(depth_keys[id])));
}

uint first_depth_state() { return 2u * params[0].view.width * params[0].view.height; }
#else
#define blended_splat(id) projected[id]
#endif

#endif
