#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// look changes the projected splats of pictures that show something else than the model's colours (LOOK_*), for people who watch or judge a training.
//   reads params counters depth_keys projected; writes projected extents
// One invocation a splat.
#include "params.glsl"
#include "blend.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };       // [N] bits of camera z, CULLED
layout(binding = 3, scalar) buffer ProjectedB { Projected projected[]; };           // [N]
layout(binding = 4, scalar) writeonly buffer Extents { vec3 extents[]; };                     // [N] px

// So large an opacity that alpha stays at its ceiling nearly up to the ellipse at which it falls to the threshold: the edge is sharp.
const float OPAQUE = 1e30;

void main() {
    uint i = global_index();
    uint look = params[0].look;
    if (look == LOOK_COLOR || i >= counters[N_ACTIVE] || depth_keys[i] == CULLED) return;
    if (look == LOOK_DEPTH) {
        projected[i].color = vec3(uintBitsToFloat(depth_keys[i]), 1.0, 0.0);
        return;
    }
    float t = 2.0 * log(255.0 * (look == LOOK_CENTERS ? 1.0 : OPAQUE)) + EXTENT_SLACK;    // squared distance in standard deviations
    vec3 conic = projected[i].conic;
    if (look == LOOK_CENTERS) {
        projected[i].opacity = 1.0;
        projected[i].conic = vec3(1.0, 0.0, 1.0) / (DOT_SIGMA * DOT_SIGMA);
        extents[i] = vec3(sqrt(t) * DOT_SIGMA);
        return;
    }
    float scale = t / (ELLIPSOID_SIGMAS * ELLIPSOID_SIGMAS);
    float det = conic.x * conic.z - conic.y * conic.y;
    projected[i].opacity = OPAQUE;
    projected[i].conic = scale * conic;
    extents[i] = ELLIPSOID_SIGMAS * sqrt(vec3(conic.z / det, conic.x / det, 1.0 / conic.x));
}
