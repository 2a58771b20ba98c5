#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// send_visible fills a packet with the splats that a view sees, in the order of their ids, for the device of that view.
// More than the packet holds fail the unit, loudly, and nothing is sent.
//   reads params depth_keys projected extents; reads and writes counters index_of; writes headers out_projected
//   out_extents out_keys sent_of
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
layout(binding = 3, scalar) readonly buffer ProjectedB { float projected[]; };          // [N][9], a Projected
layout(binding = 4, scalar) readonly buffer Extents { float extents[]; };               // [N][3] px
// [N] prefix sums of marks; then the number in the packet, or CULLED
layout(binding = 5, scalar) buffer IndexOf { uint index_of[]; };
layout(binding = 6, scalar) writeonly buffer Headers { PacketHeader headers[]; };
layout(binding = 7, scalar) writeonly buffer OutProjected { float out_projected[]; };   // [capacity][9]
layout(binding = 8, scalar) writeonly buffer OutExtents { float out_extents[]; };       // [capacity][3] px
layout(binding = 9, scalar) writeonly buffer OutKeys { uint out_keys[]; };              // [capacity]
// [views] 0 and the number of splats in the packet, as copy_records wants it
layout(binding = 10, scalar) writeonly buffer SentOf { uvec2 sent_of[]; };
#include "fail.glsl"

const uint PARTS = 9u;          // words of a Projected
const uint EXTENT_PARTS = 3u;
const uint LINE = 32u;          // words: stores of a subgroup that begin at a multiple fill whole lines of memory

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

// The word of a record of `parts` words that word `at` of a packet's buffer comes from, if it is this workgroup's to
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
    for (uint at = begin_at(PARTS); at < s_end * PARTS; at += GROUP)
        if (source_of(at, PARTS, from)) out_projected[at] = projected[from];
    for (uint at = begin_at(EXTENT_PARTS); at < s_end * EXTENT_PARTS; at += GROUP)
        if (source_of(at, EXTENT_PARTS, from)) out_extents[at] = extents[from];
    for (uint at = begin_at(1u); at < s_end; at += GROUP)
        if (source_of(at, 1u, from)) out_keys[at] = depth_keys[from];
}
