#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// bench_fma does nothing but fused multiplications and additions, 128 of them a round and invocation: the instructions
// that a device can start.
//   writes fma_sums
// Eight chains go side by side, more than the cycles that one instruction takes anywhere.
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint n;
    uint rounds;
    float scale;
    float shift;
} pc;
layout(binding = 0, scalar) writeonly buffer Sums { float fma_sums[]; };    // [n]

void main() {
    uint i = global_index();
    if (i >= pc.n) return;
    vec4 a = float(i & 255u) + vec4(0.0, 1.0, 2.0, 3.0);
    vec4 b = a + 4.0;
    for (uint r = 0u; r < pc.rounds; r++) {
        for (uint k = 0u; k < 16u; k++) {
            a = fma(a, vec4(pc.scale), vec4(pc.shift));
            b = fma(b, vec4(pc.scale), vec4(pc.shift));
        }
    }
    fma_sums[i] = dot(a, vec4(1.0)) + dot(b, vec4(1.0));
}
