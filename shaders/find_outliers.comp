#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// find_outliers says which pixels count in this step. What is left out is suspect: its error is rather large, and so is
// that of half of the 3x3 pixels around it; and its square of 8x8 lies in 16x16 of which at most 0.6 are not suspect
// and a twelfth is surely wrong: of large error at a place where the photo is alone against others (Sabour et al.,
// RobustNeRF, CVPR 2023, section 3.2, vote likewise, without places). What a photo's mask leaves out does not count
// either. Other than there, an error is that of the mean of 3x3 pixels: what is too soft or too sharp is off to both
// sides.
//   reads params history render target places; writes inliers errors
// One workgroup a tile, an invocation a pixel.
#include "params.glsl"
#include "dispatch.glsl"
#include "places.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const bool TARGET_FLOAT = false;    // these as in loss
layout(constant_id = 2) const bool MASKED = false;
layout(constant_id = 4) const bool PACKED = false;
layout(constant_id = 5) const bool SHRUNK = false;

layout(binding = 0, scalar) readonly buffer Params { StepParams params[]; };        // [1]
layout(binding = 1, scalar) readonly buffer History { uint history[]; };            // [HISTORY_WORDS]
layout(binding = 2, scalar) readonly buffer Render { vec4 render[]; };              // [P]
layout(binding = 3, scalar) readonly buffer Target { uint target[]; };              // as in loss
layout(binding = 4, scalar) readonly buffer Places { uint places[]; };              // [n_tiles][TILE_SQUARES]
layout(binding = 5, scalar) writeonly buffer Inliers { uint inliers[]; };           // [n_tiles][COUNT_WORDS] bits
// [n_tiles][TILE_SQUARES] mean error of a square's pixels and what it is; NO_SQUARE
layout(binding = 6, scalar) writeonly buffer Errors { uint errors[]; };
#include "target.glsl"

const int TILE = int(TILE_SIZE);
// The tile with its border: a pixel's square has 4 pixels more around it, each of them is judged by its neighbours, and
// these by theirs.
const int REACH = 6;
const int SIDE = TILE + 2 * REACH;
const int INNER = SIDE - 2;
// Squares of SQUARE pixels that a row of it lies in, of which two come before the tile
const int SQUARES = int(ROW_SQUARES) + 4;

// Rows of the tile with its border, a bit a pixel: those that the mask leaves, those that are not suspect, those among
// such pixels, those that are surely wrong.
shared uint s_known[SIDE], s_low[SIDE], s_near[SIDE], s_wrong[SIDE];
shared float s_red[SIDE * SIDE], s_green[SIDE * SIDE], s_blue[SIDE * SIDE];
shared float s_error[SIDE * SIDE];
shared bool s_alone[SQUARES * SQUARES];     // the photo is, at the square's place
shared uint s_squares;                      // a bit for each square of 8x8 pixels: all of it counts
shared uint s_counts[COUNT_WORDS];

// The least large error.
float large_error() {
    uint n = history[1];
    if (n == 0u) return 1e30;
    return max(LEAST_ERROR, params[0].robust_factor * float(history[0]) / (float(n) * float(ERROR_ONE)));
}

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

// Whether enough other photos agree with the model at the place of square j, and few of them differ.
bool alone(View v, ivec2 tile, int j) {
    ivec2 q = tile * int(ROW_SQUARES) + ivec2(j % SQUARES, j / SQUARES) - 2;
    ivec2 all = int(ROW_SQUARES) * ivec2(v.tile_width, v.tile_height);
    if (any(lessThan(q, ivec2(0))) || any(greaterThanEqual(q, all))) return false;
    uvec2 of = uvec2(q) / ROW_SQUARES, inside = uvec2(q) % ROW_SQUARES;
    uint place = places[(of.y * v.tile_width + of.x) * TILE_SQUARES + inside.y * ROW_SQUARES + inside.x];
    uint own = 1u << params[0].view_id % PHOTO_BITS, others = history[place] & ~(own | own << PHOTO_BITS);
    int agree = bitCount(others & (1u << PHOTO_BITS) - 1u), differ = bitCount(others >> PHOTO_BITS);
    return agree >= int(WITNESSES) && 2 * differ <= agree;
}

// Judges the error of pixel j of the tile with its border, but for the outermost. What is no number counts, so that it
// is told.
void judge(int j, float large) {
    ivec2 local = ivec2(j % INNER, j / INNER) + 1;
    if ((s_known[local.y] >> local.x & 1u) == 0u) return;
    vec3 d = vec3(0.0);
    for (int y = local.y - 1; y <= local.y + 1; y++)
        for (int x = local.x - 1; x <= local.x + 1; x++) {
            int at = y * SIDE + x;
            d += vec3(s_red[at], s_green[at], s_blue[at]);
        }
    float n = float(count_3x3(s_known[local.y - 1], s_known[local.y], s_known[local.y + 1], local.x));
    float e = (abs(d.r) + abs(d.g) + abs(d.b)) / (3.0 * n);
    s_error[local.y * SIDE + local.x] = e;
    if (!(e >= SUSPECT * large)) atomicOr(s_low[local.y], 1u << local.x);
    ivec2 q = (local - REACH + 2 * int(SQUARE)) / int(SQUARE);
    if (e >= large && s_alone[q.y * SQUARES + q.x]) atomicOr(s_wrong[local.y], 1u << local.x);
}

// What square j of the tile is. Half of its pixels must be known.
uint square_error(int j, float large) {
    ivec2 corner = REACH + ivec2(square_corner(uint(j)));
    float sum = 0.0, n = 0.0;
    for (int y = corner.y; y < corner.y + int(SQUARE); y++)
        for (int x = corner.x; x < corner.x + int(SQUARE); x++) {
            if ((s_known[y] >> x & 1u) == 0u) continue;
            sum += s_error[y * SIDE + x];
            n += 1.0;
        }
    float e = sum / n;
    if (n < 0.5 * float(SQUARE * SQUARE) || !(e < 1e30)) return NO_SQUARE;
    return uint(min(e, 1.0) * float(ERROR_ONE) + 0.5) | (e <= ALIKE * large ? SQUARE_AGREES : 0u) |
        (e >= large ? SQUARE_DIFFERS : 0u);
}

// Whether all pixels of a square of 8x8 count, by the 16x16 around it.
bool square_counts(uint square) {
    int first = int(2u + 8u * (square & 1u)), row = int(2u + 8u * (square >> 1u)), known = 0, near = 0, wrong = 0;
    for (int y = row; y < row + 16; y++) {
        known += bitCount(s_known[y] >> first & 0xFFFFu);
        near += bitCount(s_near[y] >> first & 0xFFFFu);
        wrong += bitCount(s_wrong[y] >> first & 0xFFFFu);
    }
    return 5 * near > 3 * known || 12 * wrong < known;
}

void main() {
    View v = params[0].view;
    uint tile = group_index();
    if (tile >= v.tile_width * v.tile_height) return;
    ivec2 tile_xy = ivec2(tile % v.tile_width, tile / v.tile_width);
    int lid = int(gl_LocalInvocationID.x);
    float large = large_error();
    if (lid < SIDE) s_known[lid] = s_low[lid] = s_near[lid] = s_wrong[lid] = 0u;
    if (lid < int(COUNT_WORDS)) s_counts[lid] = 0u;
    if (lid == 0) s_squares = 0u;
    if (lid < SQUARES * SQUARES) s_alone[lid] = alone(v, tile_xy, lid);
    barrier();
    for (int j = lid; j < SIDE * SIDE; j += 256) load(v, tile_xy * TILE, j, v.width * v.height);
    barrier();
    for (int j = lid; j < INNER * INNER; j += 256) judge(j, large);
    barrier();
    for (int j = lid; j < (INNER - 2) * (INNER - 2); j += 256) {
        int x = 2 + j % (INNER - 2), y = 2 + j / (INNER - 2);
        bool near = 2u * count_3x3(s_low[y - 1], s_low[y], s_low[y + 1], x) >
            count_3x3(s_known[y - 1], s_known[y], s_known[y + 1], x);
        if (near && (s_known[y] >> x & 1u) != 0u) atomicOr(s_near[y], 1u << x);
    }
    barrier();
    if (lid < int(TILE_SQUARES)) errors[TILE_SQUARES * tile + uint(lid)] = square_error(lid, large);
    if (lid < 4 && square_counts(uint(lid))) atomicOr(s_squares, 1u << lid);
    barrier();
    int x = lid % TILE, y = lid / TILE;
    uint known = s_known[y + REACH] >> (x + REACH) & 1u;
    uint counts = (s_low[y + REACH] | s_near[y + REACH]) >> (x + REACH) & 1u;
    counts |= s_squares >> (y / 8 * 2 + x / 8) & 1u;
    if ((known & counts) != 0u) atomicOr(s_counts[lid / 32], 1u << (lid % 32));
    barrier();
    if (lid < int(COUNT_WORDS)) inliers[COUNT_WORDS * tile + uint(lid)] = s_counts[lid];
}
