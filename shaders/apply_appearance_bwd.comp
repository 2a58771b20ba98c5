#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// apply_appearance_bwd takes the gradient by what the camera saw to the rendering, and sums over each tile the gradient
// by the photo's exposure, by the matrix of its white balance, and by the vignetting.
//   reads params correction render v_seen; writes v_render v_correction
// One workgroup a tile, one invocation a pixel.
#include "appearance.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };            // [1]
layout(binding = 1, scalar) readonly buffer Correct { Correction correction[]; };       // [1]
layout(binding = 2, scalar) readonly buffer Render { vec4 render[]; };                  // [P]
layout(binding = 3, scalar) readonly buffer VSeen { vec4 v_seen[]; };                   // [P] dL/d(seen rgb, alpha)
layout(binding = 4, scalar) writeonly buffer VRender { vec4 v_render[]; };              // [P] dL/d(rgb, alpha)
layout(binding = 5, scalar) writeonly buffer VCorrection { vec4 v_correction[]; };      // [n_tiles][7], see V_*
#include "corrected.glsl"
#include "lane_sum.glsl"

float v[28];    // of the pixel, as in v_correction

// back returns dL/d(rgb) of a pixel and sets v.
vec3 back(uvec2 p, vec3 rgb, vec3 g) {
    Corrected c = corrected(p, rgb);
    if (c.scale != 0.0) {
        // colour = turned * (sum of seen) / (sum of turned)
        float along = dot(g, c.turned) / (c.turned.r + c.turned.g + c.turned.b);
        vec3 v_turned = c.scale * (g - along);
        [[unroll]] for (uint k = 0u; k < 9u; k++) v[V_COLOUR + k] = v_turned[k % 3u] * c.seen[k / 3u];
        g = transpose(colour_matrix()) * v_turned + along;
    }
    if (params[0].vignetting != 0u)
        [[unroll]] for (uint i = 0u; i < 3u; i++) {
            if (c.factor[i] == 0.0) continue;
            vec2 d = from_centre(p, i);
            float q = dot(d, d);
            float v_factor = g[i] * c.exposed[i];
            float slope = vignetting(i, 2u) + q * (2.0 * vignetting(i, 3u) + 3.0 * q * vignetting(i, 4u));
            uint at = V_VIGNETTING + 5u * i;
            v[at] = -2.0 * v_factor * slope * d.x;
            v[at + 1u] = -2.0 * v_factor * slope * d.y;
            v[at + 2u] = v_factor * q;
            v[at + 3u] = v_factor * q * q;
            v[at + 4u] = v_factor * q * q * q;
        }
    g *= c.factor;
    v[0] = log(2.0) * dot(g, c.exposed);
    return g * correction[0].gain;
}

// Sums n of the seven vectors of v, from number `first` on, which is a constant so that v stays in registers.
void sum_vectors(uint tile, uint first, uint n) {
    vec4 x[3];
    [[unroll]] for (uint i = 0u; i < 3u; i++) {
        uint k = min(4u * (first + i), 24u);
        x[i] = vec4(v[k], v[k + 1u], v[k + 2u], v[k + 3u]);
    }
    sum_lanes(x);
    uint lid = gl_LocalInvocationID.x;
    if (lid < n) v_correction[7u * tile + first + lid] = s_sum[256u * lid];
}

void main() {
    View view = params[0].view;
    uint tile = group_index();
    if (tile >= view.tile_width * view.tile_height) return;
    uint lid = gl_LocalInvocationID.x;
    uvec2 p = uvec2(tile % view.tile_width, tile / view.tile_width) * TILE_SIZE +
              uvec2(lid % TILE_SIZE, lid / TILE_SIZE);
    [[unroll]] for (uint k = 0u; k < 28u; k++) v[k] = 0.0;
    if (p.x < view.width && p.y < view.height) {
        uint at = p.y * view.width + p.x;
        vec4 g = v_seen[at];
        v_render[at] = vec4(back(p, render[at].rgb, g.rgb), g.a);
    }
    sum_vectors(tile, 0u, 3u);
    if (params[0].vignetting == 0u) return;
    sum_vectors(tile, 3u, 3u);
    sum_vectors(tile, 6u, 1u);
}
