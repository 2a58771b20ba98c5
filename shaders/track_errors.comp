#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// track_errors takes the errors of a step into their history, and finds the threshold of the next step: linear between
// the borders of a bin, in the root of the error.
//   reads params counters errors; reads and writes history
// One workgroup, an invocation four bins. A failed unit changes nothing.
#include "params.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint row;       // the device's
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Errors { uint errors[]; };          // [ERROR_BINS]
layout(binding = 3, scalar) buffer History { ErrorHistory history[]; };         // [devices]

const uint BINS = ERROR_BINS / 256u;    // of an invocation

shared float s_sum[256];    // of the bins up to an invocation's last

void main() {
    if (counters[FAILED] != 0u) return;
    uint lid = gl_LocalInvocationID.x;
    float upto[BINS];
    float sum = 0.0;
    for (uint k = 0u; k < BINS; k++) {
        uint bin = BINS * lid + k;
        float n = ERROR_DECAY * history[pc.row].bins[bin] + float(errors[bin]);
        history[pc.row].bins[bin] = n;
        sum += n;
        upto[k] = sum;
    }
    s_sum[lid] = sum;
    for (uint reach = 1u; reach < 256u; reach <<= 1u) {
        barrier();
        float before = lid >= reach ? s_sum[lid - reach] : 0.0;
        barrier();
        s_sum[lid] += before;
    }
    barrier();
    float want = params[0].robust_percentile * s_sum[255];
    float below = lid > 0u ? s_sum[lid - 1u] : 0.0;
    if (!(below <= want && want < s_sum[lid])) return;
    // The first bin that reaches it, or the last one where rounding says that none does.
    uint k = 0u;
    while (k < BINS - 1u && below + upto[k] <= want) k++;
    float first = below + (k > 0u ? upto[k - 1u] : 0.0), last = below + upto[k];
    float part = clamp((want - first) / max(last - first, 1e-30), 0.0, 1.0);
    float root = (float(BINS * lid + k) + part) / float(ERROR_BINS);
    history[pc.row].threshold = root * root;
}
