#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// find_outliers says which pixels count in this step. A pixel does whose error is below the threshold that the steps
// before have left; one among such pixels, because an edge that is a little off is no passer-by: more than half of 3x3,
// or more than 0.6 of the 16x16 around its square of 8x8 (Sabour et al., RobustNeRF, CVPR 2023, section 3.2); and at
// first some of the others, drawn at random (SpotLessSplats). None does that the photo's mask leaves out. Other than
// there, an error is that of the mean of 3x3 pixels: what is too soft or too sharp is off to both sides.
//   reads params history render target; writes inliers; adds to errors
// One workgroup a tile, an invocation a pixel.
#include "params.glsl"
#include "dispatch.glsl"
#include "philox.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const bool TARGET_FLOAT = false;    // these as in loss
layout(constant_id = 2) const bool MASKED = false;
layout(constant_id = 4) const bool PACKED = false;
layout(constant_id = 5) const bool SHRUNK = false;

layout(push_constant, scalar) uniform Push {
    uint row;       // the device's
} pc;
layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer History { ErrorHistory history[]; };    // [devices]
layout(binding = 2, scalar) readonly buffer Render { vec4 render[]; };              // [P]
layout(binding = 3, scalar) readonly buffer Target { uint target[]; };              // as in loss
layout(binding = 4, scalar) writeonly buffer Inliers { uint inliers[]; };           // [n_tiles][COUNT_WORDS] bits
layout(binding = 5, scalar) buffer Errors { uint errors[]; };                       // [ERROR_BINS]
#include "target.glsl"

const int TILE = int(TILE_SIZE);
// The tile with its border: a pixel's square has 4 pixels more around it, each of them is judged by its neighbours, and
// these by theirs.
const int REACH = 6;
const int SIDE = TILE + 2 * REACH;
const int INNER = SIDE - 2;

// Rows of the tile with its border, a bit a pixel: those that the mask leaves, those whose error is low, those among
// such pixels.
shared uint s_known[SIDE], s_low[SIDE], s_near[SIDE];
shared float s_red[SIDE * SIDE], s_green[SIDE * SIDE], s_blue[SIDE * SIDE];
shared uint s_squares;              // a bit for each square of 8x8 pixels: all of it counts
shared uint s_counts[COUNT_WORDS];

// The second bound is for what is no number.
uint error_bin(float e) { return min(uint(min(sqrt(e), 1.0) * float(ERROR_BINS)), ERROR_BINS - 1u); }

uint count_3x3(uint above, uint row, uint below, int x) {
    return uint(bitCount(above >> (x - 1) & 7u) + bitCount(row >> (x - 1) & 7u) + bitCount(below >> (x - 1) & 7u));
}

// Loads pixel j of the tile with its border.
void load(View v, ivec2 corner, int j, uint n_pixels) {
    ivec2 local = ivec2(j % SIDE, j / SIDE), p = corner + local - REACH;
    bool known = p.x >= 0 && p.y >= 0 && p.x < int(v.width) && p.y < int(v.height);
    uint at = uint(p.y) * v.width + uint(p.x);
    if (MASKED && known) known = photo_counts(p, at, n_pixels);
    vec3 d = vec3(0.0);
    if (known) d = render[at].rgb - target_color(p, at, v.background);
    s_red[j] = d.r;
    s_green[j] = d.g;
    s_blue[j] = d.b;
    if (known) atomicOr(s_known[local.y], 1u << local.x);
}

// Judges the error of pixel j of the tile with its border, but for the outermost.
void judge(ivec2 corner, int j) {
    ivec2 local = ivec2(j % INNER, j / INNER) + 1;
    if ((s_known[local.y] >> local.x & 1u) == 0u) return;
    vec3 d = vec3(0.0);
    for (int y = local.y - 1; y <= local.y + 1; y++)
        for (int x = local.x - 1; x <= local.x + 1; x++) {
            int at = y * SIDE + x;
            d += vec3(s_red[at], s_green[at], s_blue[at]);
        }
    float n = float(count_3x3(s_known[local.y - 1], s_known[local.y], s_known[local.y + 1], local.x));
    float e = (abs(d.r) + abs(d.g) + abs(d.b)) / (3.0 * n), threshold = history[pc.row].threshold;
    // What is no number counts, so that it is told.
    if (threshold == 0.0 || !(e >= threshold)) atomicOr(s_low[local.y], 1u << local.x);
    ivec2 p = corner + local - REACH, off = ivec2(params[0].step, params[0].step / ERROR_STRIDE);
    bool own = all(greaterThanEqual(local, ivec2(REACH))) && all(lessThan(local, ivec2(REACH + TILE)));
    if (own && all(equal((p + off) % int(ERROR_STRIDE), ivec2(0)))) atomicAdd(errors[error_bin(e)], 1u);
}

// Whether more than 0.6 of the 16x16 pixels around a square count.
bool square_counts(uint square) {
    int first = int(2u + 8u * (square & 1u)), row = int(2u + 8u * (square >> 1u)), known = 0, near = 0;
    for (int y = row; y < row + 16; y++) {
        known += bitCount(s_known[y] >> first & 0xFFFFu);
        near += bitCount(s_near[y] >> first & 0xFFFFu);
    }
    return 5 * near > 3 * known;
}

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    uint n_pixels = v.width * v.height;
    ivec2 corner = ivec2(tile % v.tile_width, tile / v.tile_width) * TILE;
    int lid = int(gl_LocalInvocationID.x);
    if (lid < SIDE) s_known[lid] = s_low[lid] = s_near[lid] = 0u;
    if (lid < int(COUNT_WORDS)) s_counts[lid] = 0u;
    if (lid == 0) s_squares = 0u;
    barrier();
    for (int j = lid; j < SIDE * SIDE; j += 256) load(v, corner, j, n_pixels);
    barrier();
    for (int j = lid; j < INNER * INNER; j += 256) judge(corner, j);
    barrier();
    for (int j = lid; j < (INNER - 2) * (INNER - 2); j += 256) {
        int x = 2 + j % (INNER - 2), y = 2 + j / (INNER - 2);
        bool near = 2u * count_3x3(s_low[y - 1], s_low[y], s_low[y + 1], x) >
            count_3x3(s_known[y - 1], s_known[y], s_known[y + 1], x);
        if (near && (s_known[y] >> x & 1u) != 0u) atomicOr(s_near[y], 1u << x);
    }
    barrier();
    if (lid < 4 && square_counts(uint(lid))) atomicOr(s_squares, 1u << lid);
    barrier();
    int x = lid % TILE, y = lid / TILE;
    uint known = s_known[y + REACH] >> (x + REACH) & 1u;
    uint low = (s_low[y + REACH] | s_near[y + REACH]) >> (x + REACH) & 1u;
    low |= s_squares >> (y / 8 * 2 + x / 8) & 1u;
    if (known != 0u && low == 0u && params[0].robust_keep > 0.0) {
        uint at = uint(corner.y + y) * v.width + uint(corner.x + x);
        uint r = philox(uvec4(at, params[0].step, DRAW_ROBUST, params[0].view_id),
                        uvec2(params[0].seed_lo, params[0].seed_hi)).x;
        if (float(r >> 8u) * 5.9604644775390625e-8 < params[0].robust_keep) low = 1u;
    }
    if ((known & low) != 0u) atomicOr(s_counts[lid / 32], 1u << (lid % 32));
    barrier();
    if (lid < int(COUNT_WORDS)) inliers[COUNT_WORDS * tile + uint(lid)] = s_counts[lid];
}
