#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// send_grads fills a packet with the gradients of the splats that came from one device, for that device. Where the
// colour is clamped its gradient is 0: the device no longer has the colour.
//   reads params counters first_of projected v_projected v_abs_mean2d; writes headers out_grads out_abs
// One workgroup COPY_BLOCK words of out_grads; there are enough for the largest packet, and always a first, which
// writes the header.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
// Absolute gradients go along.
layout(constant_id = 1) const bool ABSGRAD = false;

layout(push_constant, scalar) uniform Push {
    uint index;         // of the device in first_of
    uint header_id;     // element of headers that is this packet's
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer FirstOf { uint first_of[]; };         // [number of devices + 1]
layout(binding = 3, scalar) readonly buffer ProjectedB { float projected[]; };    // [V][9], a Projected
layout(binding = 4, scalar) readonly buffer VProjected { float v_projected[]; };  // [V][9], a ProjectedGrad
layout(binding = 5, scalar) readonly buffer VAbs { float v_abs_mean2d[]; };       // [V][2] with ABSGRAD; else not read
layout(binding = 6, scalar) writeonly buffer Headers { PacketHeader headers[]; };
layout(binding = 7, scalar) writeonly buffer OutGrads { float out_grads[]; };       // [capacity][9]
// [capacity][2] with ABSGRAD; else not written
layout(binding = 8, scalar) writeonly buffer OutAbs { float out_abs[]; };

const uint PARTS = 9u;          // words of a Projected and of its gradient
const uint COLOR_PART = 6u;
const uint ABS_PARTS = 2u;
const uint BATCH = COPY_BLOCK / GROUP;

// Copies the workgroup's words of n records from record first on.
void copy_grads(uint first, uint n) {
    uint at = group_index() * COPY_BLOCK + gl_LocalInvocationID.x, from = first * PARTS, end = n * PARTS;
    float g[BATCH], passed[BATCH];
    [[unroll]] for (uint k = 0u; k < BATCH; k++) {
        uint word = at + k * GROUP;
        g[k] = word < end ? v_projected[from + word] : 0.0;
        // max(SH + 0.5, 0): where it clamps, colour does not move.
        passed[k] = word < end && word % PARTS >= COLOR_PART ? (projected[from + word] > 0.0 ? 1.0 : 0.0) : 1.0;
    }
    [[unroll]] for (uint k = 0u; k < BATCH; k++)
        if (at + k * GROUP < end) out_grads[at + k * GROUP] = g[k] * passed[k];
}

void copy_abs(uint first, uint n) {
    uint at = group_index() * COPY_BLOCK + gl_LocalInvocationID.x, from = first * ABS_PARTS, end = n * ABS_PARTS;
    float g[BATCH];
    [[unroll]] for (uint k = 0u; k < BATCH; k++)
        g[k] = at + k * GROUP < end ? v_abs_mean2d[from + at + k * GROUP] : 0.0;
    [[unroll]] for (uint k = 0u; k < BATCH; k++)
        if (at + k * GROUP < end) out_abs[at + k * GROUP] = g[k];
}

void main() {
    bool failed = counters[FAILED] != 0u;
    uint first = first_of[pc.index], n = failed ? 0u : first_of[pc.index + 1u] - first;
    if (group_index() == 0u && gl_LocalInvocationID.x == 0u)
        headers[pc.header_id] = PacketHeader(n, failed ? 1u : 0u, 0u, params[0].unit, counters[N_SPLATS]);
    copy_grads(first, n);
    if (ABSGRAD) copy_abs(first, n);
}
