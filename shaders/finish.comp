#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// finish ends a unit of work: it sums the loss in a fixed order and reports to the host.
//   reads params partials counted; reads and writes counters; writes report
// One workgroup.
#include "ssim.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint has_loss;      // 0: a unit without an image
    uint has_counted;   // 0: every pixel counts, alpha is not compared; 2: pixels of any photo may not count
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Partials { vec3 partials[]; };      // [n_tiles]
layout(binding = 3, scalar) writeonly buffer Reports { Report report[]; };      // [1]
layout(binding = 4, scalar) readonly buffer Counted { vec3 counted[]; };        // [n_tiles]; with has_counted

shared vec3 s_sum[256];
shared uvec2 s_count[256];      // pixels, windows
shared float s_alpha[256];

// Sums counted over the tiles; the result is right in invocation 0.
void sum_counted(uint n_tiles) {
    uint lid = gl_LocalInvocationID.x;
    uvec2 count = uvec2(0u);
    float alpha = 0.0;
    for (uint t = lid; t < n_tiles; t += 256u) {
        count += uvec2(counted[t].xy);
        alpha += counted[t].z;
    }
    s_count[lid] = count;
    s_alpha[lid] = alpha;
    for (uint half_size = 128u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size) {
            s_count[lid] += s_count[lid + half_size];
            s_alpha[lid] += s_alpha[lid + half_size];
        }
    }
}

// This invocation's share of the partials, tile after tile; several are loaded at once.
vec3 sum_partials(uint n_tiles) {
    const uint batch = 8u;
    vec3 sum = vec3(0.0);
    for (uint first = gl_LocalInvocationID.x; first < n_tiles; first += batch * 256u) {
        vec3 p[batch];
        [[unroll]] for (uint k = 0u; k < batch; k++)
            p[k] = first + k * 256u < n_tiles ? partials[first + k * 256u] : vec3(0.0);
        [[unroll]] for (uint k = 0u; k < batch; k++) sum += p[k];
    }
    return sum;
}

// Means over what counts; in the loss each is weighed by the share that counts, so that a pixel weighs the same in
// every photo.
void report_loss(View v, inout Report r) {
    float lambda = params[0].ssim_lambda;
    float n_pixels = float(v.width) * float(v.height);
    float terms = window_terms(v, params[0].ssim_same != 0u);
    r.l1 = s_sum[0].x / (3.0 * n_pixels);
    r.mse = s_sum[0].y / (3.0 * n_pixels);
    r.ssim = s_sum[0].z / terms;
    r.n_counted = v.width * v.height;
    r.loss = (1.0 - lambda) * r.l1 + lambda * (1.0 - r.ssim);
    if (pc.has_counted == 0u) return;
    r.n_counted = s_count[0].x;
    float pixels = max(1.0, float(s_count[0].x)), windows = max(1.0, 3.0 * float(s_count[0].y));
    r.alpha_l1 = s_alpha[0] / pixels;
    r.loss += params[0].alpha_loss * s_alpha[0] / n_pixels;
    if (pc.has_counted < 2u && (params[0].photo_flags & PHOTO_MASKED) == 0u) return;
    r.loss = (1.0 - lambda) * r.l1 + lambda * (3.0 * float(s_count[0].y) - s_sum[0].z) / terms +
        params[0].alpha_loss * s_alpha[0] / n_pixels;
    r.l1 = s_sum[0].x / (3.0 * pixels);
    r.mse = s_sum[0].y / (3.0 * pixels);
    r.ssim = s_sum[0].z / windows;
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    View v = params[0].view;
    vec3 sum = pc.has_loss != 0u ? sum_partials(v.tile_width * v.tile_height) : vec3(0.0);
    if (pc.has_counted != 0u) sum_counted(v.tile_width * v.tile_height);
    s_sum[lid] = sum;
    for (uint half_size = 128u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size) s_sum[lid] += s_sum[lid + half_size];
    }
    if (lid != 0u) return;
    Report r;
    r.unit = params[0].unit;
    r.step = params[0].step;
    r.failed = counters[FAILED];
    r.failed_unit = counters[FAILED_UNIT];
    r.needed = counters[NEEDED];
    r.n_splats = counters[N_SPLATS];
    r.n_visible = counters[N_VISIBLE];
    r.n_isects = counters[N_ISECTS_MAX];
    r.alpha_l1 = 0.0;
    report_loss(v, r);
    r.max_splats_hit = counters[N_NEW] > counters[N_NEW_ALLOWED] ? counters[N_NEW] - counters[N_NEW_ALLOWED] : 0u;
    report[0] = r;
}
