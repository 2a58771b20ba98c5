// How kernels read a splat that they blend. The includer declares `shapes` and `paints`, and with DEPTH `params`,
// `depth_keys` and `depths`. The latter has two numbers for each pixel, the sum of weight / depth and the gradient of
// the loss by it, and behind them such sums where `states` has colours.
#ifndef FETCH_GLSL
#define FETCH_GLSL
#include "blend.glsl"
#include "shape.glsl"

Blended blended_splat(uint id) {
    Shape s = load_shape(id);
    vec4 paint = paints[id];
#ifdef DEPTH
    return Blended(s.mean2d, s.conic, paint.x, vec4(paint.yzw, 1.0 / uintBitsToFloat(depth_keys[id])));
#else
    return Blended(s.mean2d, s.conic, paint.x, paint.yzw);
#endif
}

#ifdef DEPTH
uint first_depth_state() { return 2u * params[0].view.width * params[0].view.height; }
#endif

#endif
