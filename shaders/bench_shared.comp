#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// bench_shared reads words of shared memory, or hands them round its subgroup, 128 times a round and invocation: what
// lanes can tell each other in a second.
//   writes shared_sums
// Neighbours read neighbouring words, so that none waits for another's bank. Where a lane reads next is what it has
// read, so that no compiler leaves a read out; four chains go side by side.
#include "dispatch.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const bool SHUFFLE = false;     // hand round

layout(push_constant, scalar) uniform Push {
    uint n;
    uint rounds;
    uint stride;
} pc;
layout(binding = 0, scalar) writeonly buffer Sums { uint shared_sums[]; };      // [n]

const uint WORDS = 256u;
shared uint s_next[WORDS];

void main() {
    uint i = global_index(), lid = gl_LocalInvocationID.x;
    s_next[lid] = (lid + pc.stride) % WORDS;
    barrier();
    uvec4 at = (lid + uvec4(0u, 64u, 128u, 192u)) % WORDS;
    for (uint r = 0u; r < pc.rounds; r++)
        for (uint k = 0u; k < 32u; k++)
            if (SHUFFLE) at = subgroupShuffleXor(at, 1u) + pc.stride;
            else at = uvec4(s_next[at.x], s_next[at.y], s_next[at.z], s_next[at.w]);
    if (i < pc.n) shared_sums[i] = at.x + at.y + at.z + at.w;
}
