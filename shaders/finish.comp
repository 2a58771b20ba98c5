#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// finish ends a unit of work: it sums the loss in a fixed order and reports to the host.
//   reads params partials; reads and writes counters; writes report
// One workgroup.
#include "ssim.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(push_constant, scalar) uniform Push {
    uint has_loss;      // 0: a unit without an image
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Counters { uint counters[]; };
layout(binding = 2, scalar) readonly buffer Partials { vec3 partials[]; };      // [n_tiles]
layout(binding = 3, scalar) writeonly buffer Reports { Report report[]; };      // [1]

shared vec3 s_sum[256];

void main() {
    uint lid = gl_LocalInvocationID.x;
    View v = params[0].view;
    vec3 sum = vec3(0.0);
    if (pc.has_loss != 0u)
        for (uint t = lid; t < v.tile_width * v.tile_height; t += 256u) sum += partials[t];
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
    r.l1 = s_sum[0].x / (3.0 * float(v.width) * float(v.height));
    r.mse = s_sum[0].y / (3.0 * float(v.width) * float(v.height));
    r.ssim = s_sum[0].z / window_terms(v, params[0].ssim_same != 0u);
    r.loss = (1.0 - params[0].ssim_lambda) * r.l1 + params[0].ssim_lambda * (1.0 - r.ssim);
    r.max_splats_hit = counters[N_NEW] > counters[N_NEW_ALLOWED] ? counters[N_NEW] - counters[N_NEW_ALLOWED] : 0u;
    report[0] = r;
}
