#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
// lpips_conv convolves feature maps, adds the bias and cuts off below 0 (ReLU); beyond the border maps are 0.
//   reads map_rows features weights biases; writes convolved
// The convolution is a matrix product, pixels x (channels, kernel rows, kernel columns) times these x channels, whose
// left matrix exists in shared memory alone, a tile at a time. One workgroup makes TILE_OUT channels of TILE_PIX
// pixels; an invocation of 256 makes 4 channels of 8, one of 32, on processors, 16 of 16. Each output is one sum in the
// order of the weights, wherever in a tile or a band it lies.
#include "bands.glsl"

layout(local_size_x_id = 0, local_size_x = 256) in;     // 256 or 32

layout(constant_id = 1) const uint SIDE = 3u;       // of the kernel
layout(constant_id = 2) const uint STRIDE = 1u;
layout(constant_id = 3) const uint PAD = 0u;

layout(push_constant, scalar) uniform Push {
    uint layer;         // of the output, in map_rows
    uint width;         // of the input
    uint height;        // of the whole input
    uint channels;      // of the input
    uint ring;          // of the input, not below SIDE
    uint out_width;
    uint out_channels;
    uint out_ring;
} pc;
layout(binding = 0, scalar) readonly buffer Rows { MapRows map_rows[]; };       // [layers]
layout(binding = 1, scalar) readonly buffer Features { float features[]; };     // [ring][channels][width]
layout(binding = 2, scalar) readonly buffer Weights { float weights[]; };       // [channels][SIDE][SIDE][out_channels]
layout(binding = 3, scalar) readonly buffer Biases { float biases[]; };         // [out_channels]
layout(binding = 4, scalar) writeonly buffer Convolved { float convolved[]; };  // [out_ring][out_channels][out_width]

const uint TILE_PIX = 128u, TILE_OUT = 64u, TILE_TERMS = 16u;
const uint PIX4 = TILE_PIX / 4u, OUT4 = TILE_OUT / 4u;
// An invocation's own share of them. Loads from shared memory are what software Vulkan takes time for.
const uint LANES = gl_WorkGroupSize.x;
const uint OWN_PIX4 = LANES == 32u ? 4u : 2u, OWN_OUT4 = LANES == 32u ? 4u : 1u;
const uint STEP_PIX4 = PIX4 / OWN_PIX4, STEP_OUT4 = OUT4 / OWN_OUT4;

shared vec4 s_features[TILE_TERMS * PIX4];  // 8 KiB
shared vec4 s_weights[TILE_TERMS * OUT4];   // 4 KiB

// The four pixels whose inputs an invocation loads: columns and rows of the top left of their windows; rows also as
// rows of the buffer.
ivec4 load_x, load_y;
uvec4 load_slot;

void find_pixels(uint first_pixel, uint n_pixels, uint first_row) {
    for (uint j = 0u; j < 4u; j++) {
        uint p = first_pixel + 4u * (gl_LocalInvocationID.x % PIX4) + j;
        int x = int(p % pc.out_width * STRIDE) - int(PAD), y = int((first_row + p / pc.out_width) * STRIDE) - int(PAD);
        load_x[j] = p < n_pixels ? x : -int(SIDE);     // such a window lies outside
        load_y[j] = y;
        load_slot[j] = uint(y + int(pc.ring)) % pc.ring;
    }
}

// Term k of the sum at the four pixels.
vec4 load_features(uint k) {
    uint c = k / (SIDE * SIDE), dy = k / SIDE % SIDE, dx = k % SIDE;
    vec4 v = vec4(0.0);
    if (c >= pc.channels) return v;
    [[unroll]] for (uint j = 0u; j < 4u; j++) {
        int x = load_x[j] + int(dx), y = load_y[j] + int(dy);
        uint slot = load_slot[j] + dy;
        slot -= slot >= pc.ring ? pc.ring : 0u;
        if (x >= 0 && x < int(pc.width) && y >= 0 && y < int(pc.height))
            v[j] = features[(slot * pc.channels + c) * pc.width + uint(x)];
    }
    return v;
}

vec4 load_weights(uint k, uint terms, uint out4) {
    vec4 v = vec4(0.0);
    if (k >= terms) return v;
    [[unroll]] for (uint j = 0u; j < 4u; j++)
        if (4u * out4 + j < pc.out_channels) v[j] = weights[k * pc.out_channels + 4u * out4 + j];
    return v;
}

void main() {
    uint lid = gl_LocalInvocationID.x;
    MapRows rows = map_rows[pc.layer];
    uint n_pixels = rows.count * pc.out_width, first_pixel = gl_WorkGroupID.x * TILE_PIX;
    if (first_pixel >= n_pixels) return;
    find_pixels(first_pixel, n_pixels, rows.first);
    uint terms = pc.channels * SIDE * SIDE;
    uint pix4 = lid % STEP_PIX4, out4 = lid / STEP_PIX4;
    vec4 sum[4u * OWN_OUT4][OWN_PIX4];
    [[unroll]] for (uint o = 0u; o < 4u * OWN_OUT4; o++)
        [[unroll]] for (uint p = 0u; p < OWN_PIX4; p++) sum[o][p] = vec4(0.0);
    for (uint k0 = 0u; k0 < terms; k0 += TILE_TERMS) {
        barrier();
        for (uint i = lid; i < TILE_TERMS * PIX4; i += LANES) s_features[i] = load_features(k0 + i / PIX4);
        for (uint i = lid; i < TILE_TERMS * OUT4; i += LANES)
            s_weights[i] = load_weights(k0 + i / OUT4, terms, gl_WorkGroupID.y * OUT4 + i % OUT4);
        barrier();
        for (uint k = 0u; k < TILE_TERMS; k++) {
            vec4 v[OWN_PIX4];
            [[unroll]] for (uint p = 0u; p < OWN_PIX4; p++) v[p] = s_features[k * PIX4 + p * STEP_PIX4 + pix4];
            [[unroll]] for (uint q = 0u; q < OWN_OUT4; q++) {
                vec4 w = s_weights[k * OUT4 + q * STEP_OUT4 + out4];
                [[unroll]] for (uint o = 0u; o < 4u; o++)
                    [[unroll]] for (uint p = 0u; p < OWN_PIX4; p++)
                        sum[4u * q + o][p] = fma(vec4(w[o]), v[p], sum[4u * q + o][p]);
            }
        }
    }
    [[unroll]] for (uint p = 0u; p < OWN_PIX4; p++)
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            uint at = first_pixel + 4u * (p * STEP_PIX4 + pix4) + j;
            if (at >= n_pixels) continue;
            uint slot = (rows.first + at / pc.out_width) % pc.out_ring, x = at % pc.out_width;
            [[unroll]] for (uint o = 0u; o < 4u * OWN_OUT4; o++) {
                uint c = gl_WorkGroupID.y * TILE_OUT + 4u * (o / 4u * STEP_OUT4 + out4) + o % 4u;
                if (c < pc.out_channels)
                    convolved[(slot * pc.out_channels + c) * pc.out_width + x] = max(sum[o][p][j] + biases[c], 0.0);
            }
        }
}
