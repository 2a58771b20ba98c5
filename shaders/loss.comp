#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// loss compares the rendering with its photo: L1 and SSIM values, and for each SSIM window the derivatives by its
// statistics. Pixels that a mask leaves out are 0 in both, windows around them do not count.
//   reads params render target inliers; writes ssim_maps partials counted
// One workgroup a tile, an invocation two pixels. One channel at a time and one memory before and after a blur, because
// the less shared memory, the more workgroups a GPU runs side by side.
#include "ssim.glsl"
#include "dispatch.glsl"

layout(local_size_x = 128) in;   // LANES
// The photo is float32 RGB instead of RGBA8 (tests; photos are 8 bits).
layout(constant_id = 1) const bool TARGET_FLOAT = false;
// Photos may have masks.
layout(constant_id = 2) const bool MASKED = false;
// The photo's alpha is compared too.
layout(constant_id = 3) const bool ALPHA = false;
// Photos may be packed.
layout(constant_id = 4) const bool PACKED = false;
// The view may be smaller than the photo.
layout(constant_id = 5) const bool SHRUNK = false;
// find_outliers has said which pixels count; then MASKED is set, too.
layout(constant_id = 6) const bool ROBUST = false;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Render { vec4 render[]; };              // [P]
// At the photo: [T] RGBA8, [3 T / 4] RGB8, or [3 T] bits of float32; then [T / 32] mask; T is P unless SHRUNK
layout(binding = 2, scalar) readonly buffer Target { uint target[]; };
// [3][3][P] for each channel: d(mean SSIM)/d(mu_x, E[x^2], E[xy]) of each window
layout(binding = 3, scalar) writeonly buffer Maps { float ssim_maps[]; };
// [n_tiles] sums of color_loss(x - y), of (x - y)^2, of SSIM
layout(binding = 4, scalar) writeonly buffer Partials { vec3 partials[]; };
// [n_tiles] pixels and windows that count, sums of |alpha - photo's|; MASKED or ALPHA
layout(binding = 5, scalar) writeonly buffer Counted { vec3 counted[]; };
layout(binding = 6, scalar) readonly buffer Inliers { uint inliers[]; };      // [n_tiles][COUNT_WORDS]; ROBUST
#include "target.glsl"
#include "counts.glsl"

bool pixel_counts(ivec2 p, uint pixel, uint n_pixels) {
    if (!ROBUST) return photo_counts(p, pixel, n_pixels);
    uvec2 at = count_bit(p, params[0].view.tile_width);
    return (inliers[at.x] >> at.y & 1u) != 0u;
}

// With p = x + y and q = x - y of rendering x and photo y, four blurred planes are enough: SSIM needs E[x^2] and E[y^2]
// only as their sum.
shared vec2 s_pq[2 * HALO * BLUR_PITCH];    // p, q; then blurred along x p, q and behind them p^2, q^2

void put_blurred(int at, vec4 m) {
    s_pq[at] = m.xy;
    s_pq[HALO * BLUR_PITCH + at] = m.zw;
}

vec4 blurred(int at) { return vec4(s_pq[at], s_pq[HALO * BLUR_PITCH + at]); }

// From p, q to what is blurred along x. Invocations without a run do that of the last one again.
void blur_rows() {
    int lid = min(int(gl_LocalInvocationID.x), HALO * RUNS - 1);
    int row = lid / RUNS, run = lid % RUNS;
    vec4 sum[RUN];
    [[unroll]] for (int o = 0; o < RUN; o++) sum[o] = vec4(0.0);
    [[unroll]] for (int k = 0; k < RUN + 2 * SSIM_RADIUS; k++) {
        vec2 s = s_pq[row * HALO_PITCH + run * RUN + k];
        vec4 m = vec4(s, s * s);
        [[unroll]] for (int o = 0; o < RUN; o++)
            if (k >= o && k < o + SSIM_TAPS) sum[o] += ssim_weight(k - o - SSIM_RADIUS) * m;
    }
    barrier();
    [[unroll]] for (int o = 0; o < RUN; o++) put_blurred(row * BLUR_PITCH + o * RUNS + run, sum[o]);
}

// The windows of this invocation's pixels: means of p, q, p^2, q^2.
void blur_columns(out vec4 sum[RISE]) {
    int lid = int(gl_LocalInvocationID.x);
    int at = lid / TILE * RISE * BLUR_PITCH + lid % TILE;
    [[unroll]] for (int o = 0; o < RISE; o++) sum[o] = vec4(0.0);
    [[unroll]] for (int k = 0; k < RISE + 2 * SSIM_RADIUS; k++) {
        vec4 m = blurred(at + k * BLUR_PITCH);
        [[unroll]] for (int o = 0; o < RISE; o++)
            if (k >= o && k < o + SSIM_TAPS) sum[o] += ssim_weight(k - o - SSIM_RADIUS) * m;
    }
}

// SSIM of a window and its derivatives by (mu_x, E[x^2], E[xy]). 2 mu_x mu_y = (mu_p^2 - mu_q^2) / 2, mu_x^2 + mu_y^2 =
// (mu_p^2 + mu_q^2) / 2, and so on.
float window_ssim(vec4 m, out vec3 grad) {
    vec2 square = m.xy * m.xy;
    vec2 variance = m.zw - square;
    float a1 = 0.5 * (square.x - square.y) + SSIM_C1, a2 = 0.5 * (variance.x - variance.y) + SSIM_C2;
    float b1 = 0.5 * (square.x + square.y) + SSIM_C1, b2 = 0.5 * (variance.x + variance.y) + SSIM_C2;
    float inverse = 1.0 / (b1 * b2);
    float ssim = a1 * a2 * inverse;
    float mu_x = 0.5 * (m.x + m.y), mu_y = 0.5 * (m.x - m.y);
    grad.x = 2.0 * inverse * (mu_y * (a2 - a1) + mu_x * ssim * (b1 - b2));
    grad.y = -ssim * b1 * inverse;
    grad.z = 2.0 * a1 * inverse;
    return ssim;
}

// Sums v over the workgroup in a fixed order. s_pq serves as its memory.
vec3 group_sum(vec3 v) {
    const int PARTS = 8;
    int lid = int(gl_LocalInvocationID.x);
    put_blurred(lid, vec4(v, 0.0));
    barrier();
    vec4 sum = vec4(0.0);
    if (lid < PARTS) {
        for (int i = lid; i < LANES; i += PARTS) sum += blurred(i);
        put_blurred(LANES + lid, sum);
    }
    barrier();
    sum = vec4(0.0);
    for (int i = 0; i < PARTS; i++) sum += blurred(LANES + i);
    return sum.xyz;
}

void main() {
    View v = params[0].view;
    bool same = params[0].ssim_same != 0u;
    float huber = params[0].huber;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint n_pixels = v.width * v.height;
    ivec2 corner = ivec2(tile % v.tile_width, tile / v.tile_width) * TILE;
    ivec2 last = ivec2(v.width, v.height) - 1;
    int lid = int(gl_LocalInvocationID.x);

    // All channels of the tile with its border are loaded at once; outside the image and where the mask says so both
    // pictures are 0.
    vec2 now[LOADS];    // p and q of red
    vec4 later[LOADS];  // of green, then blue
    [[unroll]] for (int i = 0; i < LOADS; i++) {
        ivec2 p = corner + halo_pixel(lid + i * LANES) - SSIM_RADIUS, q = clamp(p, ivec2(0), last);
        uint at = uint(q.y) * v.width + uint(q.x);
        bool counts = p == q;
        if (MASKED) counts = counts && pixel_counts(q, at, n_pixels);
        vec3 x = mix(vec3(0.0), render[at].rgb, bvec3(counts)),
             y = mix(vec3(0.0), target_color(q, at, v.background), bvec3(counts));
        vec3 sum = x + y, d = x - y;
        now[i] = vec2(sum.x, d.x);
        later[i] = vec4(sum.y, d.y, sum.z, d.z);
    }
    ivec2 local = ivec2(run_column(lid % TILE), lid / TILE * RISE);
    bool inside[RISE], pixel[RISE], counts[RISE];
    uint at[RISE];
    [[unroll]] for (int o = 0; o < RISE; o++) {
        ivec2 p = corner + local + ivec2(0, o);
        inside[o] = p.x <= last.x && p.y <= last.y;
        at[o] = uint(p.y) * v.width + uint(p.x);
        pixel[o] = inside[o];
        if (MASKED) pixel[o] = inside[o] && pixel_counts(p, at[o], n_pixels);
        counts[o] = window_counts(v, same, p) && pixel[o];
    }
    vec3 sums = vec3(0.0);
    for (uint channel = 0u; channel < 3u; channel++) {
        [[unroll]] for (int i = 0; i < LOADS; i++) {
            int j = lid + i * LANES;
            if (j < HALO_AREA) s_pq[halo_at(j)] = now[i];
            now[i] = later[i].xy;
            later[i].xy = later[i].zw;
        }
        barrier();
        float d[RISE];
        [[unroll]] for (int o = 0; o < RISE; o++)
            d[o] = s_pq[(local.y + o + SSIM_RADIUS) * HALO_PITCH + local.x + SSIM_RADIUS].y;
        blur_rows();
        barrier();
        vec4 window[RISE];
        blur_columns(window);
        barrier();
        [[unroll]] for (int o = 0; o < RISE; o++) {
            vec3 grad;
            float ssim = window_ssim(window[o], grad);
            if (!inside[o]) continue;
            sums += vec3(color_loss(d[o], huber), d[o] * d[o], counts[o] ? ssim : 0.0);
            [[unroll]] for (int k = 0; k < 3; k++)
                ssim_maps[(3u * channel + uint(k)) * n_pixels + at[o]] = counts[o] ? grad[k] : 0.0;
        }
    }
    sums = group_sum(sums);
    if (lid == 0) partials[tile] = sums;
    if (!MASKED && !ALPHA) return;
    vec3 count = vec3(0.0);
    [[unroll]] for (int o = 0; o < RISE; o++) {
        count.xy += vec2(float(pixel[o]), float(counts[o]));
        if (ALPHA && pixel[o])
            count.z += abs(1.0 - render[at[o]].w - target_alpha(corner + local + ivec2(0, o), at[o]));
    }
    barrier();  // group_sum's memory is about to be overwritten
    count = group_sum(count);
    if (lid == 0) counted[tile] = count;
}
