#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// look changes the projected splats of pictures that show something else than the model's colours (LOOK_*), for people
// who watch or judge a training.
//   reads params counters depth_keys shapes paints; writes shapes paints
// One invocation a splat.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };       // [N] bits of camera z, CULLED
layout(binding = 3, scalar) buffer Shapes { vec4 shapes[]; };                       // [N][2], a Shape
layout(binding = 4, scalar) buffer Paints { vec4 paints[]; };                       // [N] opacity, colour

#include "shape.glsl"

void store_shape(uint i, Shape s) {
    vec4 words[2] = shape_words(s);
    shapes[2u * i] = words[0];
    shapes[2u * i + 1u] = words[1];
}

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
        paints[i].yzw = vec3(z, 1.0, z * z);
        return;
    }
    Shape s = load_shape(i);
    if (look == LOOK_CENTERS) {
        paints[i].x = 1.0;
        s.conic = vec3(1.0, 0.0, 1.0) / (DOT_SIGMA * DOT_SIGMA);
        s.extents = vec3(reach(1.0) * DOT_SIGMA);
        store_shape(i, s);
        return;
    }
    s.extents *= ELLIPSOID_SIGMAS / reach(paints[i].x);
    paints[i].x = OPAQUE;
    float scale = reach(OPAQUE) / ELLIPSOID_SIGMAS;
    s.conic *= scale * scale;
    store_shape(i, s);
}
