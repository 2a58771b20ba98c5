#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// fetch copies the records of a packet. The source is memory of the host, which answers late: each invocation has several words on their way.
//   reads first_of source; writes destination
// One workgroup COPY_BLOCK words; there are enough for the largest packet.
#include "const.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint index;             // of the packet in first_of
    uint words;             // of a record
    uint source_at_offset;  // 1: they begin at record first_of[index] of source; 0: at the first
    uint at_offset;         // likewise of destination
} pc;
layout(binding = 0, scalar) readonly buffer FirstOf { uint first_of[]; };           // [number of packets + 1]
layout(binding = 1, scalar) readonly buffer Source { uint source[]; };              // [records][words]
layout(binding = 2, scalar) writeonly buffer Destination { uint destination[]; };   // [records][words]

void main() {
    uint first = first_of[pc.index];
    uint n = (first_of[pc.index + 1u] - first) * pc.words;
    uint from = pc.source_at_offset != 0u ? first * pc.words : 0u;
    uint to = pc.at_offset != 0u ? first * pc.words : 0u;
    const uint batch = COPY_BLOCK / GROUP;
    uint at = group_index() * COPY_BLOCK + gl_LocalInvocationID.x;
    uint w[batch];
    [[unroll]] for (uint k = 0u; k < batch; k++) w[k] = at + k * GROUP < n ? source[from + at + k * GROUP] : 0u;
    [[unroll]] for (uint k = 0u; k < batch; k++)
        if (at + k * GROUP < n) destination[to + at + k * GROUP] = w[k];
}
