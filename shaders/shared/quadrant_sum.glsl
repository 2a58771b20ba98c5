// Sums over the pixels of a tile, where a lane has two of them (column_sum.glsl where it has eight), in a fixed order that does not know the subgroup
// size: a lane's two pixels, then lanes in a binary tree of neighbours (1, 2, 4, 8, 16 apart), then quadrants. Subgroups hand their part of the tree to
// the others through shared memory.
//
// All sums go up the tree at once: at each level a lane keeps half of them and hands the other half to its neighbour, so that 9 exchanges do what 45
// would (a transposed reduction). A column's pixels have one dx: up to there three moments in dy are enough, and dx comes in afterwards.
#ifndef QUADRANT_SUM_GLSL
#define QUADRANT_SUM_GLSL

// Sums of a splat over the pixels of a column, q being dL/dsigma and d = mean2d - pixel centre.
struct ColumnSums {
    float q;
    float y;        // q dy
    float yy;       // q dy dy
    vec3 color;
};

// Places of a splat's sums. Lanes hold them in four groups of three; what has no name here is of no use.
const uint SUM_Q = 0u;
const uint SUM_X = 1u;          // q dx
const uint SUM_XX = 2u;
const uint SUM_YY = 3u;
const uint SUM_Y = 6u;
const uint SUM_XY = 7u;
const uint SUM_R = 8u;
const uint SUM_G = 9u;
const uint SUM_B = 11u;
const uint SUM_ABS = 12u;       // two sums with ABSGRAD

// Parts of a tile's sum that go through shared memory.
const uint N_PARTS = SUBGROUP_SIZE > 32u ? 4u : RASTER_LANES / SUBGROUP_SIZE;
// Splats whose parts are there at once.
const uint ROUND = WHOLE_COLUMNS ? (SUBGROUP_SIZE > 4u ? 32u : 16u) : SUBGROUP_SIZE > 32u ? 32u : SUBGROUP_SIZE;
const uint PART_SUMS = (WHOLE_COLUMNS ? 9u : 12u) + (ABSGRAD ? 2u : 0u);
shared float s_parts[ROUND * N_PARTS * PART_SUMS];

// A lane's half of a pair of sums, with its neighbour's share added.
float exchange(float low, float high, bool upper, uint distance) {
    return (upper ? high : low) + subgroupShuffleXor(upper ? low : high, distance);
}

// What a lane stores where, found out once.
struct SumPlace {
    bvec4 upper;    // bits 0 to 3 of the lane's number: which half of a pair it keeps
    bool stores;
    uint at;        // of splat 0's sums
    uint abs_at;
};

SumPlace sum_place() {
    uint lane = gl_SubgroupInvocationID;
    uint part = SUBGROUP_SIZE > 32u ? gl_SubgroupID * 2u + lane / 32u : gl_SubgroupID;
    SumPlace p;
    p.upper = notEqual(uvec4(lane) & uvec4(1u, 2u, 4u, 8u), uvec4(0u));
    p.stores = SUBGROUP_SIZE < 16u || (lane & 16u) == 0u && (lane & 12u) != 12u;
    p.at = part * PART_SUMS + (lane & 3u) * 3u;
    if (SUBGROUP_SIZE >= 8u && p.upper.z) p.at += 2u;
    if (SUBGROUP_SIZE >= 16u && p.upper.w && !p.upper.z) p.at += 1u;
    p.abs_at = part * PART_SUMS + SUM_ABS + (lane & 1u);
    return p;
}

// Stores the subgroup's part of the sums of splat j of the round, dx being that of the lane's column. All lanes of the subgroup call it.
void store_sums(ColumnSums s, float dx, uint j, SumPlace p) {
    bvec4 upper = p.upper;
    uint at = p.at + j * N_PARTS * PART_SUMS;
    // Rows of the column, 1 and 2 apart: groups 0 to 3 are left with q, yy, (y, red), (green, blue).
    float a0 = exchange(s.q, s.yy, upper.x, 1u), a1 = exchange(s.y, s.color.g, upper.x, 1u), a2 = exchange(s.color.r, s.color.b, upper.x, 1u);
    float c0 = exchange(a0, a1, upper.y, 2u), c1 = exchange(0.0, a2, upper.y, 2u);
    precise float e1 = dx * c0;     // rounded, whatever it is added to: with subgroups of 4 it goes through memory
    precise float x2 = dx * e1;
    float e2 = upper.y ? c1 : x2;
    if (SUBGROUP_SIZE < 8u) {
        s_parts[at] = c0;
        s_parts[at + 1u] = e1;
        s_parts[at + 2u] = e2;
        return;
    }
    // Columns.
    float f0 = exchange(c0, e2, upper.z, 4u), f1 = exchange(e1, 0.0, upper.z, 4u);
    if (SUBGROUP_SIZE < 16u) {
        s_parts[at] = f0;
        if (!upper.z) s_parts[at + 1u] = f1;
        return;
    }
    float h = exchange(f0, f1, upper.w, 8u);
    if (SUBGROUP_SIZE > 16u) h += subgroupShuffleXor(h, 16u);
    if (p.stores) s_parts[at] = h;
}

// The same for the two sums of absolute values.
void store_abs_sums(vec2 g, uint j, SumPlace p) {
    float a = exchange(g.x, g.y, p.upper.x, 1u);
    for (uint distance = 2u; distance < min(SUBGROUP_SIZE, 32u); distance *= 2u) a += subgroupShuffleXor(a, distance);
    if ((gl_SubgroupInvocationID & 31u) < 2u) s_parts[p.abs_at + j * N_PARTS * PART_SUMS] = a;
}

float part(uint at, uint i) { return s_parts[at + i * PART_SUMS]; }
float sum2(uint at, uint i) { return part(at, i) + part(at, i + 1u); }
float sum4(uint at, uint i) { return sum2(at, i) + sum2(at, i + 2u); }
float sum8(uint at, uint i) { return sum4(at, i) + sum4(at, i + 4u); }
float sum16(uint at, uint i) { return sum8(at, i) + sum8(at, i + 8u); }

// Sum `sum` (SUM_*) of splat j of the round over the whole tile. The parts are zero afterwards: what no subgroup stores must be.
float take_sum(uint j, uint sum) {
    uint at = j * N_PARTS * PART_SUMS + sum;
    float total = N_PARTS == 4u ? sum4(at, 0u) : N_PARTS == 8u ? sum8(at, 0u) : N_PARTS == 16u ? sum16(at, 0u) : sum16(at, 0u) + sum16(at, 16u);
    for (uint i = 0u; i < N_PARTS; i++) s_parts[at + i * PART_SUMS] = 0.0;
    return total == 0.0 ? 0.0 : total;  // no zero is negative: whether parts are depends on which subgroups the splat misses
}

void clear_parts() {
    for (uint i = gl_LocalInvocationID.x; i < ROUND * N_PARTS * PART_SUMS; i += RASTER_LANES) s_parts[i] = 0.0;
}

#endif
