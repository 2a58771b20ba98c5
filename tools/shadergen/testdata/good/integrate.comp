#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// integrate moves every body.
// One invocation a body.
#include "const.glsl"
#include "body.glsl"
layout(local_size_x = 128) in;

layout(constant_id = 1) const bool DAMPED = false;
layout(constant_id = 4) const uint N_ITERATIONS = 3u;
layout(constant_id = 5) const int OFFSET = -2;
layout(constant_id = 6) const float DRAG = 0.5;
layout(constant_id = 7) const float BIAS = 0.0;
layout(constant_id = 8) const uint UNUSED = 1u;

layout(push_constant, scalar) uniform Push {
    uint n_bodies;
    float dt; // s
    vec3 wind;
    Body seed;
} pc;
layout(binding = 0, scalar) readonly buffer BodiesIn { Body bodies_in[]; }; // [N]
// [N], those that moved;
// the others are not written
layout(binding = 1, scalar) writeonly buffer BodiesOut { Body bodies_out[]; };
layout(binding = 2, scalar) readonly buffer Forces { vec3 forces[]; }; // [N] newton
layout(binding = 3, scalar) buffer CountersBlock { uint n_moved; uint failed; } counters;

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= pc.n_bodies) return;
    Body b = bodies_in[i];
    for (uint k = 0; k < N_ITERATIONS; k++) {
        b.pos += (forces[i] + pc.wind) * pc.dt * (DAMPED ? DRAG : 1.0) + BIAS;
    }
    b.kind += OFFSET + pc.seed.kind + int(TILE_SIZE);
    bodies_out[i] = b;
    atomicAdd(counters.n_moved, 1);
    if (b.mass < 0.0) counters.failed = 1;
}
