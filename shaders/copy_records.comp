#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// copy_records copies a part of a piece of a packet's records to or from memory of the host, which answers late: each
// invocation has several words on their way. There are few workgroups, so that copies both ways run at the same time,
// and the bus carries both.
//   reads first_of source; writes destination
// Any number of workgroups, each COPY_BLOCK words at a time.
#include "const.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint index;     // of the packet in first_of
    uint words;     // of a record
    uint at_offset; // 1: they go to record first_of[index] of destination; 0: to the first
    uint piece;     // of n_pieces as equal as blocks let
    uint n_pieces;
    uint part;      // of n_parts of the piece, likewise
    uint n_parts;
} pc;
layout(binding = 0, scalar) readonly buffer FirstOf { uint first_of[]; };           // [number of packets + 1]
layout(binding = 1, scalar) readonly buffer Source { uint source[]; };              // [records][words]
layout(binding = 2, scalar) writeonly buffer Destination { uint destination[]; };   // [records][words]

void main() {
    uint first = first_of[pc.index];
    uint n = (first_of[pc.index + 1u] - first) * pc.words;
    uint to = pc.at_offset != 0u ? first * pc.words : 0u;
    uint blocks = div_up(n, COPY_BLOCK), of_piece = div_up(blocks, pc.n_pieces);
    uint of_part = div_up(of_piece, pc.n_parts), start = pc.part * of_part;
    uint end = min(blocks, pc.piece * of_piece + min(of_piece, start + of_part));
    const uint batch = COPY_BLOCK / GROUP;
    for (uint b = pc.piece * of_piece + start + group_index(); b < end; b += gl_NumWorkGroups.x * gl_NumWorkGroups.y) {
        uint at = b * COPY_BLOCK + gl_LocalInvocationID.x;
        uint w[batch];
        [[unroll]] for (uint k = 0u; k < batch; k++) w[k] = at + k * GROUP < n ? source[at + k * GROUP] : 0u;
        [[unroll]] for (uint k = 0u; k < batch; k++)
            if (at + k * GROUP < n) destination[to + at + k * GROUP] = w[k];
    }
}
