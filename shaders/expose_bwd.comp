#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// expose_bwd takes the gradient by the mapped colours to the rendered ones, and sums over each tile the gradient by the
// map's twelve numbers.
//   reads params exposures render v_exposed; writes v_render v_affine
// One workgroup a tile, one invocation a pixel.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer Exposures { Exposure exposures[]; };    // [n_views]
layout(binding = 2, scalar) readonly buffer Render { vec4 render[]; };              // [P]
layout(binding = 3, scalar) readonly buffer VExposed { vec4 v_exposed[]; };         // [P] dL/d(mapped rgb, alpha)
layout(binding = 4, scalar) writeonly buffer VRender { vec4 v_render[]; };          // [P] dL/d(rgb, alpha)
layout(binding = 5, scalar) writeonly buffer VAffine { vec4 v_affine[]; };          // [n_tiles][3] rows of dL/d(affine)
#include "exposure.glsl"

shared vec4 s_sum[3 * TILE_PIXELS];     // [3][TILE_PIXELS]

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint lid = gl_LocalInvocationID.x;
    uvec2 p = uvec2(tile % v.tile_width, tile / v.tile_width) * TILE_SIZE + uvec2(lid % TILE_SIZE, lid / TILE_SIZE);
    vec4 g = vec4(0.0);
    vec4 x = vec4(0.0);
    if (p.x < v.width && p.y < v.height) {
        uint at = p.y * v.width + p.x;
        uint id = params[0].view_id;
        g = v_exposed[at];
        x = vec4(render[at].rgb, 1.0);
        vec4 back = g.x * affine_row(id, 0u) + g.y * affine_row(id, 1u) + g.z * affine_row(id, 2u);
        v_render[at] = vec4(back.rgb, g.a);
    }
    for (uint i = 0u; i < 3u; i++) s_sum[i * TILE_PIXELS + lid] = g[i] * x;
    for (uint half_size = 128u; half_size > 0u; half_size >>= 1u) {
        barrier();
        if (lid < half_size)
            for (uint i = 0u; i < 3u; i++) s_sum[i * TILE_PIXELS + lid] += s_sum[i * TILE_PIXELS + lid + half_size];
    }
    barrier();
    if (lid < 3u) v_affine[3u * tile + lid] = s_sum[lid * TILE_PIXELS];
}
