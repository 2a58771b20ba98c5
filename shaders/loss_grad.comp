#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// loss_grad is the gradient of the loss by every pixel: each pixel gathers the derivatives of the windows that hold it.
//   reads params render target ssim_maps inliers; writes v_render
// None flows to a pixel that a mask leaves out. One workgroup a tile, an invocation two pixels.
#include "ssim.glsl"
#include "dispatch.glsl"

layout(local_size_x = 128) in;   // LANES
layout(constant_id = 1) const bool TARGET_FLOAT = false;
layout(constant_id = 2) const bool MASKED = false;
layout(constant_id = 3) const bool ALPHA = false;
layout(constant_id = 4) const bool PACKED = false;
layout(constant_id = 5) const bool SHRUNK = false;
layout(constant_id = 6) const bool ROBUST = false;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Render { vec4 render[]; };          // [P]
// At the photo: [T] RGBA8, [3 T / 4] RGB8, or [3 T] bits of float32; then [T / 32] mask; T is P unless SHRUNK
layout(binding = 2, scalar) readonly buffer Target { uint target[]; };
layout(binding = 3, scalar) readonly buffer Maps { float ssim_maps[]; };        // [3][3][P]
layout(binding = 4, scalar) writeonly buffer VRender { vec4 v_render[]; };      // [P] dL/d(rgb, alpha)
layout(binding = 5, scalar) readonly buffer Inliers { uint inliers[]; };      // [n_tiles][COUNT_WORDS]; ROBUST
#include "target.glsl"
#include "counts.glsl"

bool pixel_counts(ivec2 p, uint pixel, uint n_pixels) {
    if (!ROBUST) return photo_counts(p, pixel, n_pixels);
    uvec2 at = count_bit(p, params[0].view.tile_width);
    return (inliers[at.x] >> at.y & 1u) != 0u;
}

// The three maps of a channel, then the same blurred along x, in two parts: a vec3 in an array may take 16 bytes.
shared vec2 s_map2[HALO * HALO_PITCH];
shared float s_map1[HALO * HALO_PITCH];

// A channel's maps of this invocation's pixels of the tile with its border; windows outside the image do not exist.
void load_maps(View v, ivec2 corner, uint channel, out vec3 maps[LOADS]) {
    uint n_pixels = v.width * v.height;
    [[unroll]] for (int i = 0; i < LOADS; i++) {
        ivec2 p = corner + halo_pixel(int(gl_LocalInvocationID.x) + i * LANES) - SSIM_RADIUS;
        ivec2 q = clamp(p, ivec2(0), ivec2(v.width, v.height) - 1);
        uint at = 3u * channel * n_pixels + uint(q.y) * v.width + uint(q.x);
        vec3 m = vec3(ssim_maps[at], ssim_maps[at + n_pixels], ssim_maps[at + 2u * n_pixels]);
        maps[i] = mix(vec3(0.0), m, bvec3(p == q));
    }
}

// As in loss.comp.
void blur_rows() {
    int lid = min(int(gl_LocalInvocationID.x), HALO * RUNS - 1);
    int row = lid / RUNS, run = lid % RUNS;
    vec3 sum[RUN];
    [[unroll]] for (int o = 0; o < RUN; o++) sum[o] = vec3(0.0);
    [[unroll]] for (int k = 0; k < RUN + 2 * SSIM_RADIUS; k++) {
        int at = row * HALO_PITCH + run * RUN + k;
        vec3 m = vec3(s_map2[at], s_map1[at]);
        [[unroll]] for (int o = 0; o < RUN; o++)
            if (k >= o && k < o + SSIM_TAPS) sum[o] += ssim_weight(k - o - SSIM_RADIUS) * m;
    }
    barrier();
    [[unroll]] for (int o = 0; o < RUN; o++) {
        int at = row * BLUR_PITCH + o * RUNS + run;
        s_map2[at] = sum[o].xy;
        s_map1[at] = sum[o].z;
    }
}

void blur_columns(out vec3 sum[RISE]) {
    int lid = int(gl_LocalInvocationID.x);
    int at = lid / TILE * RISE * BLUR_PITCH + lid % TILE;
    [[unroll]] for (int o = 0; o < RISE; o++) sum[o] = vec3(0.0);
    [[unroll]] for (int k = 0; k < RISE + 2 * SSIM_RADIUS; k++) {
        vec3 m = vec3(s_map2[at + k * BLUR_PITCH], s_map1[at + k * BLUR_PITCH]);
        [[unroll]] for (int o = 0; o < RISE; o++)
            if (k >= o && k < o + SSIM_TAPS) sum[o] += ssim_weight(k - o - SSIM_RADIUS) * m;
    }
}

void main() {
    View v = params[0].view;
    bool same = params[0].ssim_same != 0u;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint n_pixels = v.width * v.height;
    ivec2 corner = ivec2(tile % v.tile_width, tile / v.tile_width) * TILE;
    int lid = int(gl_LocalInvocationID.x);
    vec3 maps[LOADS];
    load_maps(v, corner, 0u, maps);
    bool inside[RISE], pixel[RISE];
    ivec2 place[RISE];
    uint at[RISE];
    vec3 x[RISE], y[RISE], g[RISE];     // rendering, photo, gradient
    float g_alpha[RISE];
    float alpha_scale = params[0].alpha_loss / float(n_pixels);
    [[unroll]] for (int o = 0; o < RISE; o++) {
        ivec2 p = corner + ivec2(run_column(lid % TILE), lid / TILE * RISE + o);
        inside[o] = p.x < int(v.width) && p.y < int(v.height);
        place[o] = inside[o] ? p : ivec2(0);
        at[o] = inside[o] ? uint(p.y) * v.width + uint(p.x) : 0u;
        pixel[o] = inside[o];
        if (MASKED) pixel[o] = inside[o] && pixel_counts(place[o], at[o], n_pixels);
        g[o] = vec3(0.0);
        x[o] = render[at[o]].rgb;
        y[o] = target_color(place[o], at[o], v.background);
        g_alpha[o] = ALPHA ? alpha_scale * sign(1.0 - render[at[o]].w - target_alpha(place[o], at[o])) : 0.0;
    }
    float lambda = params[0].ssim_lambda, huber = params[0].huber;
    float l1_scale = (1.0 - lambda) / (3.0 * float(n_pixels));
    float ssim_scale = -lambda / window_terms(v, same);
    for (uint channel = 0u; channel < 3u; channel++) {
        [[unroll]] for (int i = 0; i < LOADS; i++) {
            int j = lid + i * LANES;
            if (j >= HALO_AREA) continue;
            s_map2[halo_at(j)] = maps[i].xy;
            s_map1[halo_at(j)] = maps[i].z;
        }
        barrier();
        load_maps(v, corner, min(channel + 1u, 2u), maps);  // of the next channel, on its way during the blur
        blur_rows();
        barrier();
        vec3 sum[RISE];
        blur_columns(sum);
        barrier();
        // The channels take turns at .x.
        [[unroll]] for (int o = 0; o < RISE; o++) {
            g[o] = vec3(g[o].yz, l1_scale * color_slope(x[o].x - y[o].x, huber) +
                        ssim_scale * (sum[o].x + 2.0 * x[o].x * sum[o].y + y[o].x * sum[o].z));
            x[o] = x[o].yzx;
            y[o] = y[o].yzx;
        }
    }
    [[unroll]] for (int o = 0; o < RISE; o++) {
        if (inside[o]) v_render[at[o]] = pixel[o] ? vec4(g[o], g_alpha[o]) : vec4(0.0);
    }
}
