#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// depth_loss compares the depth of a picture with what is known of the photo's: it is the gradient of the mean
// alpha |sum of weight / depth / alpha - 1 / known depth| over the pixels whose depth is known. The alpha in front is a
// weight without a gradient: a pixel that is half transparent pulls half as much, and splats that are all too far away,
// or all too near, move rather than become transparent.
//   reads params table target render; reads and writes depths v_render
// One workgroup a tile. A pixel that a mask leaves out does not count.
#include "params.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;  // TILE_PIXELS
layout(constant_id = 0) const bool TARGET_FLOAT = false;
layout(constant_id = 1) const bool MASKED = false;
layout(constant_id = 2) const bool PACKED = false;
layout(constant_id = 3) const bool SHRUNK = false;

layout(push_constant, scalar) uniform Push {
    uint n_heads;       // of a view in the table
    float weight;       // of the mean in the loss before the first step
    float log2_final;   // of the share of the weight that is left after decay_steps
    float decay_steps;
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };    // [1]
// [n_views][n_heads] where a view's known depths at a level begin, 0: none are known. There: their number n;
// [n_tiles + 1] the first of each tile; [n] place in the tile in the low 8 bits, above them 24 bits of 1 / depth
layout(binding = 1, scalar) readonly buffer Table { uint table[]; };
layout(binding = 2, scalar) readonly buffer Target { uint target[]; };          // the photo, see target.glsl
layout(binding = 3, scalar) readonly buffer Render { vec4 render[]; };          // [P]
// [P][2] sum of weight / depth, dL/d(it)
layout(binding = 4, scalar) buffer Depths { float depths[]; };
layout(binding = 5, scalar) buffer VRender { vec4 v_render[]; };                // [P] dL/d(rgb, alpha)
#include "target.glsl"

shared uint s_known[TILE_PIXELS];

// Puts the tile's known depths at their pixels, and returns the number of the view's.
uint load_known(uint tile, uint n_tiles) {
    uint lid = gl_LocalInvocationID.x;
    uint at = table[params[0].view_id * pc.n_heads + params[0].level], n = 0u;
    s_known[lid] = 0u;
    barrier();
    if (at != 0u) {
        n = table[at];
        uint first = table[at + 1u + tile], end = table[at + 2u + tile], words = at + 2u + n_tiles;
        for (uint k = first + lid; k < end; k += TILE_PIXELS) {
            uint word = table[words + k];
            s_known[word & (TILE_PIXELS - 1u)] = word;
        }
    }
    barrier();
    return n;
}

void main() {
    View v = params[0].view;
    uint tile = group_index(), n_tiles = v.tile_width * v.tile_height;
    if (tile >= n_tiles) return;
    uint n = load_known(tile, n_tiles);
    uint lid = gl_LocalInvocationID.x;
    uvec2 p = uvec2(tile % v.tile_width, tile / v.tile_width) * TILE_SIZE + uvec2(lid % TILE_SIZE, lid / TILE_SIZE);
    if (p.x >= v.width || p.y >= v.height) return;
    uint i = p.y * v.width + p.x, word = s_known[lid];
    if (word == 0u || MASKED && !photo_counts(ivec2(p), i, v.width * v.height)) {
        depths[2u * i + 1u] = 0.0;
        return;
    }
    float known = uintBitsToFloat(word >> 8 << 7);
    float progress = min(1.0, float(params[0].step) / pc.decay_steps);
    float weight = pc.weight * exp2(pc.log2_final * progress) / float(n);
    float sum = depths[2u * i], alpha = 1.0 - render[i].w;
    float slope = weight * sign(sum - alpha * known);
    depths[2u * i + 1u] = slope;
    if (alpha > 0.0) v_render[i].a -= slope * (sum / alpha);
}
