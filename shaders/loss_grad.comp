#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// loss_grad is the gradient of the loss by every pixel: each pixel gathers the derivatives of the windows that hold it.
//   reads params render target ssim_maps; writes v_render
// None flows to a pixel that a mask leaves out. One workgroup a tile, one invocation a pixel.
#include "ssim.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const bool TARGET_FLOAT = false;
layout(constant_id = 2) const bool MASKED = false;
layout(constant_id = 3) const bool ALPHA = false;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
layout(binding = 1, scalar) readonly buffer Render { vec4 render[]; };          // [P]
layout(binding = 2, scalar) readonly buffer Target { uint target[]; };          // [P] RGBA8, or [3 P] bits of float32; then [P / 32] mask
layout(binding = 3, scalar) readonly buffer Maps { vec3 ssim_maps[]; };         // [3][P]
layout(binding = 4, scalar) writeonly buffer VRender { vec4 v_render[]; };      // [P] dL/d(rgb, alpha)
#include "target.glsl"

// Plain floats: a vec3 array may take 16 bytes an element.
shared float s_map[3 * HALO_AREA];
shared float s_blur[3 * STRIP];

vec3 map_at(int j) { return vec3(s_map[3 * j], s_map[3 * j + 1], s_map[3 * j + 2]); }
vec3 blur_at(int j) { return vec3(s_blur[3 * j], s_blur[3 * j + 1], s_blur[3 * j + 2]); }

void main() {
    View v = params[0].view;
    bool same = params[0].ssim_same != 0u;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    ivec2 corner = ivec2(tile % v.tile_width, tile / v.tile_width) * int(TILE_SIZE);
    int lid = int(gl_LocalInvocationID.x);
    ivec2 p = corner + ivec2(lid % int(TILE_SIZE), lid / int(TILE_SIZE));
    bool inside = p.x < int(v.width) && p.y < int(v.height);
    uint n_pixels = v.width * v.height;
    uint at = uint(p.y) * v.width + uint(p.x);
    bool pixel = inside;
    if (MASKED) pixel = inside && pixel_counts(at, n_pixels);
    float lambda = params[0].ssim_lambda;
    float l1_scale = (1.0 - lambda) / (3.0 * float(n_pixels));
    float ssim_scale = -lambda / window_terms(v, same);
    vec3 g = vec3(0.0);
    for (uint channel = 0u; channel < 3u; channel++) {
        for (int j = lid; j < HALO_AREA; j += 256) {
            ivec2 q = corner + ivec2(j % HALO, j / HALO) - SSIM_RADIUS;
            bool in_image = q.x >= 0 && q.y >= 0 && q.x < int(v.width) && q.y < int(v.height);
            vec3 m = in_image ? ssim_maps[channel * n_pixels + uint(q.y) * v.width + uint(q.x)] : vec3(0.0);
            for (int k = 0; k < 3; k++) s_map[3 * j + k] = m[k];
        }
        barrier();
        for (int j = lid; j < STRIP; j += 256) {
            int from = (j / int(TILE_SIZE)) * HALO + j % int(TILE_SIZE) + SSIM_RADIUS;
            vec3 sum = vec3(0.0);
            for (int d = -SSIM_RADIUS; d <= SSIM_RADIUS; d++) sum += ssim_weight(d) * map_at(from + d);
            for (int k = 0; k < 3; k++) s_blur[3 * j + k] = sum[k];
        }
        barrier();
        vec3 sum = vec3(0.0);
        for (int d = 0; d <= 2 * SSIM_RADIUS; d++) sum += ssim_weight(d - SSIM_RADIUS) * blur_at(lid + d * int(TILE_SIZE));
        if (pixel) {
            float x = render[at][channel], y = target_channel(at, channel, v.background);
            g[channel] = l1_scale * sign(x - y) + ssim_scale * (sum.x + 2.0 * x * sum.y + y * sum.z);
        }
        barrier();
    }
    float g_alpha = 0.0;
    if (ALPHA && pixel) g_alpha = params[0].alpha_loss / float(n_pixels) * sign(1.0 - render[at].w - target_alpha(at));
    if (inside) v_render[at] = vec4(g, g_alpha);
}
