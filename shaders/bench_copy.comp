#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// bench_copy copies memory, 16 bytes an invocation: what it moves in a second is what any kernel can hope for.
//   reads copy_from; writes copy_to
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n;
} pc;
layout(binding = 0, scalar) readonly buffer From { uvec4 copy_from[]; };    // [n]
layout(binding = 1, scalar) writeonly buffer To { uvec4 copy_to[]; };       // [n]

void main() {
    uint i = global_index();
    if (i < pc.n) copy_to[i] = copy_from[i];
}
