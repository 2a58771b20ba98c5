// The rays that pixels look along.
#ifndef RAY_GLSL
#define RAY_GLSL
#include "params.glsl"

const float WIDEST_ANGLE = 1.5;     // of a fisheye, whose rays at right angles to the axis have no depth

// The ray of a pixel, with camera z 1.
vec3 ray_of(View v, vec2 centre) {
    vec2 p = (centre - v.center) / v.focal;
    if (v.camera_model == CAMERA_FISHEYE) {
        float angle = clamp(length(p), 1e-6, WIDEST_ANGLE);
        p *= tan(angle) / angle;
    }
    return vec3(p, 1.0);
}

#endif
