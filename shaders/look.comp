#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// look changes the projected splats of pictures that show something else than the model's colours (LOOK_*), for people
// who watch or judge a training.
//   reads params counters depth_keys projected extents; writes projected extents
// One invocation a splat.
#include "params.glsl"
#include "blend.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };       // [N] bits of camera z, CULLED
layout(binding = 3, scalar) buffer ProjectedB { Projected projected[]; };           // [N]
layout(binding = 4, scalar) buffer Extents { vec3 extents[]; };                     // [N] px

// So large an opacity that alpha stays at its ceiling nearly up to the ellipse at which it falls to the threshold: the
// edge is sharp.
const float OPAQUE = 1e30;

// How far from the mean alpha falls to the threshold, in standard deviations; as in project.glsl.
float reach(float opacity) { return sqrt(2.0 * log(255.0 * opacity) + EXTENT_SLACK); }

void main() {
    uint i = global_index();
    uint look = params[0].look;
    if (look == LOOK_COLOR || i >= counters[N_ACTIVE] || depth_keys[i] == CULLED) return;
    if (look == LOOK_DEPTH) {
        float z = uintBitsToFloat(depth_keys[i]);
        projected[i].color = vec3(z, 1.0, z * z);
        return;
    }
    if (look == LOOK_CENTERS) {
        projected[i].opacity = 1.0;
        projected[i].conic = vec3(1.0, 0.0, 1.0) / (DOT_SIGMA * DOT_SIGMA);
        extents[i] = vec3(reach(1.0) * DOT_SIGMA);
        return;
    }
    extents[i] *= ELLIPSOID_SIGMAS / reach(projected[i].opacity);
    projected[i].opacity = OPAQUE;
    float scale = reach(OPAQUE) / ELLIPSOID_SIGMAS;
    projected[i].conic *= scale * scale;
}
