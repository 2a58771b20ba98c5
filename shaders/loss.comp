#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// loss compares the rendering with its photo: L1 and SSIM values, and for each SSIM window the derivatives by its statistics.
//   reads params render target; writes ssim_maps partials
// One workgroup a tile. One channel at a time, so that 16 KiB of shared memory are enough.
#include "ssim.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
// The photo is float32 RGB instead of RGBA8 (tests; photos are 8 bits).
layout(constant_id = 1) const bool TARGET_FLOAT = false;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Render { vec4 render[]; };              // [P]
layout(binding = 2, scalar) readonly buffer Target { uint target[]; };              // [P] RGBA8, or [3 P] bits of float32
layout(binding = 3, scalar) writeonly buffer Maps { vec3 ssim_maps[]; };            // [3][P] d(mean SSIM)/d(mu_x, E[x^2], E[xy]) of each window
layout(binding = 4, scalar) writeonly buffer Partials { vec3 partials[]; };         // [n_tiles] sums of |x - y|, of (x - y)^2, of SSIM
#include "target.glsl"

shared vec2 s_xy[HALO_AREA];            // render, photo
shared vec2 s_mean[STRIP];              // blurred along x: x, y
shared vec3 s_square[STRIP];            // x^2, y^2, xy

// Fills s_xy for one channel; outside the image both are 0.
void load_channel(View v, ivec2 corner, uint channel) {
    for (int j = int(gl_LocalInvocationID.x); j < HALO_AREA; j += 256) {
        ivec2 p = corner + ivec2(j % HALO, j / HALO) - SSIM_RADIUS;
        bool inside = p.x >= 0 && p.y >= 0 && p.x < int(v.width) && p.y < int(v.height);
        uint at = uint(p.y) * v.width + uint(p.x);
        s_xy[j] = inside ? vec2(render[at][channel], target_channel(at, channel, v.background)) : vec2(0.0);
    }
}

void blur_rows() {
    for (int j = int(gl_LocalInvocationID.x); j < STRIP / RUN; j += 256) {
        int row = j / RUNS, x = (j % RUNS) * RUN;
        vec2 mean[RUN];
        vec3 square[RUN];
        [[unroll]] for (int k = 0; k < RUN; k++) {
            mean[k] = vec2(0.0);
            square[k] = vec3(0.0);
        }
        [[unroll]] for (int d = 0; d < RUN + TAPS - 1; d++) {
            vec2 s = s_xy[row * HALO + x + d];
            vec3 s2 = vec3(s.x * s.x, s.y * s.y, s.x * s.y);
            [[unroll]] for (int k = 0; k < RUN; k++) {
                if (d - k < 0 || d - k >= TAPS) continue;
                mean[k] += ssim_weight(d - k - SSIM_RADIUS) * s;
                square[k] += ssim_weight(d - k - SSIM_RADIUS) * s2;
            }
        }
        [[unroll]] for (int k = 0; k < RUN; k++) {
            s_mean[row * int(TILE_SIZE) + x + k] = mean[k];
            s_square[row * int(TILE_SIZE) + x + k] = square[k];
        }
    }
}

// Blurs column x from row y on: the statistics of the windows around the run's pixels.
void blur_column(int x, int y, out vec2 mu[RUN], out vec3 square[RUN]) {
    [[unroll]] for (int k = 0; k < RUN; k++) {
        mu[k] = vec2(0.0);
        square[k] = vec3(0.0);
    }
    [[unroll]] for (int d = 0; d < RUN + TAPS - 1; d++) {
        vec2 m = s_mean[(y + d) * int(TILE_SIZE) + x];
        vec3 s = s_square[(y + d) * int(TILE_SIZE) + x];
        [[unroll]] for (int k = 0; k < RUN; k++) {
            if (d - k < 0 || d - k >= TAPS) continue;
            mu[k] += ssim_weight(d - k - SSIM_RADIUS) * m;
            square[k] += ssim_weight(d - k - SSIM_RADIUS) * s;
        }
    }
}

// SSIM of a window and its derivatives by (mu_x, E[x^2], E[xy]).
float window_ssim(vec2 mu, vec3 square, out vec3 grad) {
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

// One channel of a run of pixels: adds to sums, writes the maps.
vec3 compare_run(View v, bool same, ivec2 corner, int x, int y, uint channel) {
    vec2 mu[RUN];
    vec3 square[RUN];
    blur_column(x, y, mu, square);
    vec3 sums = vec3(0.0);
    [[unroll]] for (int k = 0; k < RUN; k++) {
        ivec2 p = corner + ivec2(x, y + k);
        if (p.x >= int(v.width) || p.y >= int(v.height)) continue;
        vec3 grad;
        float ssim = window_ssim(mu[k], square[k], grad);
        bool counts = window_counts(v, same, p);
        vec2 s = s_xy[(y + k + SSIM_RADIUS) * HALO + x + SSIM_RADIUS];
        float d = s.x - s.y;
        sums += vec3(abs(d), d * d, counts ? ssim : 0.0);
        ssim_maps[channel * v.width * v.height + uint(p.y) * v.width + uint(p.x)] = counts ? grad : vec3(0.0);
    }
    return sums;
}

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    ivec2 corner = ivec2(tile % v.tile_width, tile / v.tile_width) * int(TILE_SIZE);
    int lid = int(gl_LocalInvocationID.x);
    vec3 sums = vec3(0.0);
    for (uint channel = 0u; channel < 3u; channel++) {
        load_channel(v, corner, channel);
        barrier();
        blur_rows();
        barrier();
        if (lid < int(TILE_SIZE) * RUNS)
            sums += compare_run(v, params[0].ssim_same != 0u, corner, lid % int(TILE_SIZE), lid / int(TILE_SIZE) * RUN, channel);
        barrier();  // shared arrays are about to be overwritten
    }
    sums = group_sum(sums);
    if (lid == 0) partials[tile] = sums;
}
