#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// loss compares the rendering with its photo: L1 and SSIM values, and for each SSIM window the derivatives by its statistics.
// Pixels that a mask leaves out are 0 in both, windows around them do not count.
//   reads params render target; writes ssim_maps partials counted
// One workgroup a tile, one invocation a pixel. One channel at a time, so that 16 KiB of shared memory are enough.
#include "ssim.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
// The photo is float32 RGB instead of RGBA8 (tests; photos are 8 bits).
layout(constant_id = 1) const bool TARGET_FLOAT = false;
// Photos may have masks.
layout(constant_id = 2) const bool MASKED = false;
// The photo's alpha is compared too.
layout(constant_id = 3) const bool ALPHA = false;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Render { vec4 render[]; };              // [P]
layout(binding = 2, scalar) readonly buffer Target { uint target[]; };              // [P] RGBA8, or [3 P] bits of float32; then [P / 32] mask
layout(binding = 3, scalar) writeonly buffer Maps { vec3 ssim_maps[]; };            // [3][P] d(mean SSIM)/d(mu_x, E[x^2], E[xy]) of each window
layout(binding = 4, scalar) writeonly buffer Partials { vec3 partials[]; };         // [n_tiles] sums of |x - y|, of (x - y)^2, of SSIM
layout(binding = 5, scalar) writeonly buffer Counted { vec3 counted[]; };           // [n_tiles] pixels and windows that count, sums of |alpha - photo's|; MASKED or ALPHA
#include "target.glsl"

shared vec2 s_xy[HALO_AREA];            // render, photo
shared vec2 s_mean[STRIP];              // blurred along x: x, y
shared vec3 s_square[STRIP];            // x^2, y^2, xy

// Fills s_xy for one channel; outside the image and where the mask says so both are 0.
void load_channel(View v, ivec2 corner, uint channel) {
    for (int j = int(gl_LocalInvocationID.x); j < HALO_AREA; j += 256) {
        ivec2 p = corner + ivec2(j % HALO, j / HALO) - SSIM_RADIUS;
        bool inside = p.x >= 0 && p.y >= 0 && p.x < int(v.width) && p.y < int(v.height);
        uint at = uint(p.y) * v.width + uint(p.x);
        if (MASKED) inside = inside && pixel_counts(at, v.width * v.height);
        s_xy[j] = inside ? vec2(render[at][channel], target_channel(at, channel, v.background)) : vec2(0.0);
    }
}

void blur_rows() {
    for (int j = int(gl_LocalInvocationID.x); j < STRIP; j += 256) {
        int at = (j / int(TILE_SIZE)) * HALO + j % int(TILE_SIZE) + SSIM_RADIUS;
        vec2 mean = vec2(0.0);
        vec3 square = vec3(0.0);
        for (int d = -SSIM_RADIUS; d <= SSIM_RADIUS; d++) {
            vec2 s = s_xy[at + d];
            float w = ssim_weight(d);
            mean += w * s;
            square += w * vec3(s.x * s.x, s.y * s.y, s.x * s.y);
        }
        s_mean[j] = mean;
        s_square[j] = square;
    }
}

// SSIM of this invocation's window and its derivatives by (mu_x, E[x^2], E[xy]).
float window_ssim(out vec3 grad) {
    int at = int(gl_LocalInvocationID.x);
    vec2 mu = vec2(0.0);
    vec3 square = vec3(0.0);
    for (int d = 0; d <= 2 * SSIM_RADIUS; d++) {
        float w = ssim_weight(d - SSIM_RADIUS);
        mu += w * s_mean[at + d * int(TILE_SIZE)];
        square += w * s_square[at + d * int(TILE_SIZE)];
    }
    float a1 = 2.0 * mu.x * mu.y + SSIM_C1;
    float a2 = 2.0 * (square.z - mu.x * mu.y) + SSIM_C2;
    float b1 = mu.x * mu.x + mu.y * mu.y + SSIM_C1;
    float b2 = (square.x - mu.x * mu.x) + (square.y - mu.y * mu.y) + SSIM_C2;
    float ssim = a1 * a2 / (b1 * b2);
    float d_xx = -ssim / b2;
    float d_xy = 2.0 * a1 / (b1 * b2);
    float d_mu = 2.0 * mu.y * a2 / (b1 * b2) - 2.0 * mu.x * ssim / b1 - 2.0 * mu.x * d_xx - mu.y * d_xy;
    grad = vec3(d_mu, d_xx, d_xy);
    return ssim;
}

// Sums v over the workgroup by a fixed tree; the result is right in invocation 0.
// s_square is free by then and serves as its memory.
vec3 group_sum(vec3 v) {
    uint lid = gl_LocalInvocationID.x;
    s_square[lid] = v;
    for (uint half_size = 128u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size) s_square[lid] += s_square[lid + half_size];
    }
    return s_square[0];
}

void main() {
    View v = params[0].view;
    bool same = params[0].ssim_same != 0u;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    ivec2 corner = ivec2(tile % v.tile_width, tile / v.tile_width) * int(TILE_SIZE);
    int lid = int(gl_LocalInvocationID.x);
    ivec2 local = ivec2(lid % int(TILE_SIZE), lid / int(TILE_SIZE));
    ivec2 p = corner + local;
    bool inside = p.x < int(v.width) && p.y < int(v.height);
    uint at = uint(p.y) * v.width + uint(p.x);
    bool pixel = inside;
    if (MASKED) pixel = inside && pixel_counts(at, v.width * v.height);
    bool counts = window_counts(v, same, p) && pixel;
    vec3 sums = vec3(0.0);
    for (uint channel = 0u; channel < 3u; channel++) {
        load_channel(v, corner, channel);
        barrier();
        blur_rows();
        barrier();
        vec3 grad;
        float ssim = window_ssim(grad);
        vec2 s = s_xy[(local.y + SSIM_RADIUS) * HALO + local.x + SSIM_RADIUS];
        if (inside) {
            float d = s.x - s.y;
            sums += vec3(abs(d), d * d, counts ? ssim : 0.0);
            ssim_maps[channel * v.width * v.height + at] = counts ? grad : vec3(0.0);
        }
        barrier();  // shared arrays are about to be overwritten
    }
    sums = group_sum(sums);
    if (lid == 0) partials[tile] = sums;
    if (!MASKED && !ALPHA) return;
    barrier();  // group_sum's memory is about to be overwritten
    vec3 count = vec3(float(pixel), float(counts), 0.0);
    if (ALPHA && pixel) count.z = abs(1.0 - render[at].w - target_alpha(at));
    count = group_sum(count);
    if (lid == 0) counted[tile] = count;
}
