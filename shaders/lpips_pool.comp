#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// lpips_pool takes the maximum of each window of feature maps. Windows lie inside the map; what is left over at its
// right and bottom is left out.
//   reads map_rows features; writes pooled
// One invocation an output.
#include "bands.glsl"
#include "dispatch.glsl"

layout(local_size_x = 256) in;

layout(constant_id = 1) const uint SIDE = 2u;       // of a window
layout(constant_id = 2) const uint STRIDE = 2u;

layout(push_constant, scalar) uniform Push {
    uint layer;         // of the output, in map_rows
    uint channels;
    uint width;         // of the input
    uint ring;          // of the input
    uint out_width;
    uint out_ring;
} pc;
layout(binding = 0, scalar) readonly buffer Rows { MapRows map_rows[]; };   // [layers]
layout(binding = 1, scalar) readonly buffer Features { float features[]; }; // [ring][channels][width]
layout(binding = 2, scalar) writeonly buffer Pooled { float pooled[]; };    // [out_ring][channels][out_width]

void main() {
    uint i = global_index(), x = i % pc.out_width, c = i / pc.out_width % pc.channels,
         row = i / pc.out_width / pc.channels;
    if (row >= map_rows[pc.layer].count) return;
    uint y = map_rows[pc.layer].first + row;
    float most = 0.0;
    for (uint dy = 0u; dy < SIDE; dy++) {
        uint slot = (y * STRIDE + dy) % pc.ring;
        for (uint dx = 0u; dx < SIDE; dx++) {
            float v = features[(slot * pc.channels + c) * pc.width + x * STRIDE + dx];
            most = dx + dy == 0u ? v : max(most, v);
        }
    }
    pooled[(y % pc.out_ring * pc.channels + c) * pc.out_width + x] = most;
}
