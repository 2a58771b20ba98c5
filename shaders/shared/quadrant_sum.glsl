// Sums over the pixels of a tile in a fixed order that does not know the subgroup size: a lane's two pixels, then lanes in a binary tree of neighbours
// (1, 2, 4, 8, 16 apart), then quadrants. Subgroups hand their part of the tree to the others through shared memory.
//
// Nine sums go up the tree at once: at each level a lane keeps half of them and hands the other half to its neighbour, so that 12 exchanges do what 45
// would (a transposed reduction).
#ifndef QUADRANT_SUM_GLSL
#define QUADRANT_SUM_GLSL
#include "const.glsl"

// Sums of a splat over pixels, q being dL/dsigma and d = mean2d - pixel centre.
const uint SUM_X = 0u;          // q dx
const uint SUM_Y = 1u;
const uint SUM_XX = 2u;         // q dx dx
const uint SUM_XY = 3u;
const uint SUM_YY = 4u;
const uint SUM_Q = 5u;
const uint SUM_COLOR = 6u;      // and the two after it
const uint N_SUMS = 9u;

// Parts of a tile's sum that go through shared memory.
const uint N_PARTS = SUBGROUP_SIZE > 32u ? 4u : RASTER_LANES / SUBGROUP_SIZE;
// Splats whose parts are there at once.
const uint ROUND = SUBGROUP_SIZE > 32u ? 32u : SUBGROUP_SIZE;
const uint PART_SUMS = ABSGRAD ? N_SUMS + 2u : N_SUMS;
shared float s_parts[ROUND * N_PARTS * PART_SUMS];

// A lane's half of a pair of sums, with its neighbour's share added.
float exchange(float low, float high, bool upper, uint distance) {
    return (upper ? high : low) + subgroupShuffleXor(upper ? low : high, distance);
}

// Stores the subgroup's part of the sums of splat j of the round. All lanes of the subgroup call it.
void store_sums(float g[9], uint j) {
    uint lane = gl_SubgroupInvocationID;
    bool b0 = (lane & 1u) != 0u, b1 = (lane & 2u) != 0u, b2 = (lane & 4u) != 0u, b3 = (lane & 8u) != 0u;
    uint part = SUBGROUP_SIZE > 32u ? gl_SubgroupID * 2u + lane / 32u : gl_SubgroupID;
    uint at = (j * N_PARTS + part) * PART_SUMS;
    float a0 = exchange(g[0], g[5], b0, 1u), a1 = exchange(g[1], g[6], b0, 1u), a2 = exchange(g[2], g[7], b0, 1u), a3 = exchange(g[3], g[8], b0, 1u);
    float a4 = exchange(g[4], 0.0, b0, 1u);
    float c0 = exchange(a0, a3, b1, 2u), c1 = exchange(a1, a4, b1, 2u), c2 = exchange(a2, 0.0, b1, 2u);
    uint k = (b0 ? 5u : 0u) + (b1 ? 3u : 0u);       // number of the sum in c0
    uint n = b0 && b1 ? 1u : b1 ? 2u : 3u;          // of c0, c1, c2 that are sums
    if (SUBGROUP_SIZE < 8u) {
        s_parts[at + k] = c0;
        if (n > 1u) s_parts[at + k + 1u] = c1;
        if (n > 2u) s_parts[at + k + 2u] = c2;
        return;
    }
    float d0 = exchange(c0, c2, b2, 4u), d1 = exchange(c1, 0.0, b2, 4u);
    k += b2 ? 2u : 0u;
    n = b2 ? (n == 3u ? 1u : 0u) : min(n, 2u);
    if (SUBGROUP_SIZE < 16u) {
        if (n > 0u) s_parts[at + k] = d0;
        if (n > 1u) s_parts[at + k + 1u] = d1;
        return;
    }
    float e = exchange(d0, d1, b3, 8u);
    if (SUBGROUP_SIZE > 16u) e += subgroupShuffleXor(e, 16u);
    k += b3 ? 1u : 0u;
    if (n > (b3 ? 1u : 0u) && (lane & 16u) == 0u) s_parts[at + k] = e;
}

// The same for the two sums of absolute values.
void store_abs_sums(vec2 g, uint j) {
    uint lane = gl_SubgroupInvocationID;
    bool b0 = (lane & 1u) != 0u;
    uint part = SUBGROUP_SIZE > 32u ? gl_SubgroupID * 2u + lane / 32u : gl_SubgroupID;
    float a = exchange(g.x, g.y, b0, 1u);
    for (uint distance = 2u; distance < min(SUBGROUP_SIZE, 32u); distance *= 2u) a += subgroupShuffleXor(a, distance);
    if ((lane & 31u) < 2u) s_parts[(j * N_PARTS + part) * PART_SUMS + N_SUMS + lane % 2u] = a;
}

float part(uint at, uint i) { return s_parts[at + i * PART_SUMS]; }
float sum2(uint at, uint i) { return part(at, i) + part(at, i + 1u); }
float sum4(uint at, uint i) { return sum2(at, i) + sum2(at, i + 2u); }
float sum8(uint at, uint i) { return sum4(at, i) + sum4(at, i + 4u); }
float sum16(uint at, uint i) { return sum8(at, i) + sum8(at, i + 8u); }

// Sum `sum` of splat j of the round over the whole tile. The parts are zero afterwards: what no subgroup stores must be.
float take_sum(uint j, uint sum) {
    uint at = j * N_PARTS * PART_SUMS + sum;
    float total = N_PARTS == 4u ? sum4(at, 0u) : N_PARTS == 8u ? sum8(at, 0u) : N_PARTS == 16u ? sum16(at, 0u) : sum16(at, 0u) + sum16(at, 16u);
    for (uint i = 0u; i < N_PARTS; i++) s_parts[at + i * PART_SUMS] = 0.0;
    return total;
}

void clear_parts() {
    for (uint i = gl_LocalInvocationID.x; i < ROUND * N_PARTS * PART_SUMS; i += RASTER_LANES) s_parts[i] = 0.0;
}

#endif
