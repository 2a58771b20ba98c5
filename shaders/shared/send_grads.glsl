// What a workgroup of send_grads does. The includer declares the kernel's interface, and whether there is an ABSGRAD:
// gradients beside the nine components.
#ifndef SEND_GRADS_GLSL
#define SEND_GRADS_GLSL

const uint PARTS = 9u;          // words of the gradient of a projection
const uint COLOR_PART = 6u;
#ifdef DEPTH
const uint ABS_PARTS = 3u;      // and the gradient by the inverse of the depth
#else
const uint ABS_PARTS = 2u;
#endif
const uint BATCH = COPY_BLOCK / GROUP;

// Copies the workgroup's words of n records from record first on.
void copy_grads(uint first, uint n) {
    uint at = group_index() * COPY_BLOCK + gl_LocalInvocationID.x, from = first * PARTS, end = n * PARTS;
    float g[BATCH], passed[BATCH];
    [[unroll]] for (uint k = 0u; k < BATCH; k++) {
        uint word = at + k * GROUP;
        g[k] = word < end ? v_projected[from + word] : 0.0;
        // max(SH + 0.5, 0): where it clamps, colour does not move.
        uint part = word % PARTS, paint = 4u * (first + word / PARTS) + part - (COLOR_PART - 1u);
        passed[k] = word < end && part >= COLOR_PART ? (paints[paint] > 0.0 ? 1.0 : 0.0) : 1.0;
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

#endif
