#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// send_visible fills a packet with the splats that a view sees, in the order of their ids, for the device of that view.
// More than the packet holds fail the unit, loudly, and nothing is sent.
//   reads params depth_keys shapes paints; reads and writes counters index_of; writes headers out_shapes
//   out_paints out_keys sent_of
// One workgroup SEND_BLOCK splats. There is always a first workgroup, which writes the header.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint capacity;      // splats that the packet has room for
    uint header_id;     // element of headers that is this packet's
    uint view;          // element of sent_of
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer DepthKeys { uint depth_keys[]; };           // [N]
layout(binding = 3, scalar) readonly buffer Shapes { vec4 shapes[]; };                  // [N][2], a Shape
layout(binding = 4, scalar) readonly buffer Paints { vec4 paints[]; };                  // [N] opacity, colour
// [N] prefix sums of marks; then the number in the packet, or CULLED
layout(binding = 5, scalar) buffer IndexOf { uint index_of[]; };
layout(binding = 6, scalar) writeonly buffer Headers { PacketHeader headers[]; };
layout(binding = 7, scalar) writeonly buffer OutShapes { vec4 out_shapes[]; };          // [capacity][2]
layout(binding = 8, scalar) writeonly buffer OutPaints { vec4 out_paints[]; };          // [capacity]
layout(binding = 9, scalar) writeonly buffer OutKeys { uint out_keys[]; };              // [capacity]
// [views] 0 and the number of splats in the packet, as copy_records wants it
layout(binding = 10, scalar) writeonly buffer SentOf { uvec2 sent_of[]; };
#include "fail.glsl"

const uint LINE = 32u;          // elements: stores of a subgroup that begin at a multiple fill whole lines of memory

shared uint s_ids[SEND_BLOCK];  // of the splats seen
shared uint s_first;            // the first one's number in the packet
shared uint s_end;              // the last one's, and one

// Numbers the workgroup's splats from id first on, of n in all.
void number_splats(uint first, uint n) {
    const uint batch = SEND_BLOCK / GROUP;
    uint numbers[batch];
    bool seen[batch];
    uint lid = gl_LocalInvocationID.x;
    if (lid == 0u) s_first = index_of[first];
    [[unroll]] for (uint k = 0u; k < batch; k++) {
        uint i = first + k * GROUP + lid;
        numbers[k] = i < n ? index_of[i] : 0u;
        seen[k] = i < n && depth_keys[i] != CULLED;
    }
    barrier();
    [[unroll]] for (uint k = 0u; k < batch; k++) {
        uint i = first + k * GROUP + lid;
        if (seen[k]) s_ids[numbers[k] - s_first] = i;
        if (i < n) index_of[i] = seen[k] ? numbers[k] : CULLED;
        if (i + 1u == min(n, first + SEND_BLOCK)) s_end = numbers[k] + (seen[k] ? 1u : 0u);
    }
    barrier();
}

// The element of a record of `parts` that element `at` of a packet's buffer comes from, if it is this workgroup's to
// write.
bool source_of(uint at, uint parts, out uint from) {
    from = 0u;
    if (at < s_first * parts) return false;
    from = s_ids[at / parts - s_first] * parts + at % parts;
    return true;
}

// Where an invocation begins to write in a buffer of such records.
uint begin_at(uint parts) { return (s_first * parts & ~(LINE - 1u)) + gl_LocalInvocationID.x; }

void main() {
    uint n_sent = counters[N_SENT];
    bool fits = n_sent <= pc.capacity;
    if (group_index() == 0u && gl_LocalInvocationID.x == 0u) {
        bool failed = !fits || counters[FAILED] != 0u;
        if (!fits) fail(FAILED_PACKET, n_sent);
        headers[pc.header_id] = PacketHeader(failed ? 0u : n_sent, failed ? 1u : 0u, fits ? 0u : n_sent,
                                             params[0].unit, counters[N_SPLATS]);
        sent_of[pc.view] = uvec2(0u, failed ? 0u : n_sent);
    }
    uint first = group_index() * SEND_BLOCK, n = counters[N_ACTIVE];
    if (first >= n) return;
    number_splats(first, n);
    if (!fits) return;
    uint from;
    for (uint at = begin_at(2u); at < s_end * 2u; at += GROUP)
        if (source_of(at, 2u, from)) out_shapes[at] = shapes[from];
    for (uint at = begin_at(1u); at < s_end; at += GROUP)
        if (source_of(at, 1u, from)) {
            out_paints[at] = paints[from];
            out_keys[at] = depth_keys[from];
        }
}
