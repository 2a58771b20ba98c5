#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// loss_grad is the gradient of the loss by every pixel: each pixel gathers the derivatives of the windows that hold it.
//   reads params render target ssim_maps; writes v_render
// One workgroup a tile.
#include "ssim.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const bool TARGET_FLOAT = false;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Render { vec4 render[]; };          // [P]
layout(binding = 2, scalar) readonly buffer Target { uint target[]; };          // [P] RGBA8, or [3 P] bits of float32
layout(binding = 3, scalar) readonly buffer Maps { vec3 ssim_maps[]; };         // [3][P]
layout(binding = 4, scalar) writeonly buffer VRender { vec4 v_render[]; };      // [P] dL/d(rgb, alpha)
#include "target.glsl"

// Plain floats: a vec3 array may take 16 bytes an element.
shared float s_map[3 * HALO_AREA];
shared float s_blur[3 * STRIP];

vec3 map_at(int j) { return vec3(s_map[3 * j], s_map[3 * j + 1], s_map[3 * j + 2]); }
vec3 blur_at(int j) { return vec3(s_blur[3 * j], s_blur[3 * j + 1], s_blur[3 * j + 2]); }

// Fills s_map for one channel; outside the image it is 0.
void load_maps(View v, ivec2 corner, uint channel) {
    for (int j = int(gl_LocalInvocationID.x); j < HALO_AREA; j += 256) {
        ivec2 q = corner + ivec2(j % HALO, j / HALO) - SSIM_RADIUS;
        bool in_image = q.x >= 0 && q.y >= 0 && q.x < int(v.width) && q.y < int(v.height);
        uint at = channel * v.width * v.height + uint(q.y) * v.width + uint(q.x);
        vec3 m = in_image ? ssim_maps[at] : vec3(0.0);
        for (int k = 0; k < 3; k++) s_map[3 * j + k] = m[k];
    }
}

void blur_rows() {
    for (int j = int(gl_LocalInvocationID.x); j < STRIP / RUN; j += 256) {
        int row = j / RUNS, x = (j % RUNS) * RUN;
        vec3 sum[RUN];
        [[unroll]] for (int k = 0; k < RUN; k++) sum[k] = vec3(0.0);
        [[unroll]] for (int d = 0; d < RUN + TAPS - 1; d++) {
            vec3 m = map_at(row * HALO + x + d);
            [[unroll]] for (int k = 0; k < RUN; k++)
                if (d - k >= 0 && d - k < TAPS) sum[k] += ssim_weight(d - k - SSIM_RADIUS) * m;
        }
        [[unroll]] for (int k = 0; k < RUN; k++)
            for (int i = 0; i < 3; i++) s_blur[3 * (row * int(TILE_SIZE) + x + k) + i] = sum[k][i];
    }
}

// One channel of the gradient of a run of pixels: column x of the tile from row y on.
void gather_run(StepParams p, ivec2 corner, int x, int y, uint channel, inout vec3 g[RUN]) {
    vec3 sum[RUN];
    [[unroll]] for (int k = 0; k < RUN; k++) sum[k] = vec3(0.0);
    [[unroll]] for (int d = 0; d < RUN + TAPS - 1; d++) {
        vec3 b = blur_at((y + d) * int(TILE_SIZE) + x);
        [[unroll]] for (int k = 0; k < RUN; k++)
            if (d - k >= 0 && d - k < TAPS) sum[k] += ssim_weight(d - k - SSIM_RADIUS) * b;
    }
    float l1_scale = (1.0 - p.ssim_lambda) / (3.0 * float(p.view.width * p.view.height));
    float ssim_scale = -p.ssim_lambda / window_terms(p.view, p.ssim_same != 0u);
    [[unroll]] for (int k = 0; k < RUN; k++) {
        ivec2 q = corner + ivec2(x, y + k);
        if (q.x >= int(p.view.width) || q.y >= int(p.view.height)) continue;
        uint at = uint(q.y) * p.view.width + uint(q.x);
        float r = render[at][channel], t = target_channel(at, channel, p.view.background);
        g[k][channel] = l1_scale * sign(r - t) + ssim_scale * (sum[k].x + 2.0 * r * sum[k].y + t * sum[k].z);
    }
}

void main() {
    StepParams p = params[0];
    View v = p.view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    ivec2 corner = ivec2(tile % v.tile_width, tile / v.tile_width) * int(TILE_SIZE);
    int lid = int(gl_LocalInvocationID.x);
    int x = lid % int(TILE_SIZE), y = lid / int(TILE_SIZE) * RUN;
    bool works = lid < int(TILE_SIZE) * RUNS;
    vec3 g[RUN];
    [[unroll]] for (int k = 0; k < RUN; k++) g[k] = vec3(0.0);
    for (uint channel = 0u; channel < 3u; channel++) {
        load_maps(v, corner, channel);
        barrier();
        blur_rows();
        barrier();
        if (works) gather_run(p, corner, x, y, channel, g);
        barrier();
    }
    if (!works) return;
    [[unroll]] for (int k = 0; k < RUN; k++) {
        ivec2 q = corner + ivec2(x, y + k);
        if (q.x < int(v.width) && q.y < int(v.height)) v_render[uint(q.y) * v.width + uint(q.x)] = vec4(g[k], 0.0);
    }
}
