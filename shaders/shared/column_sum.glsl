// Sums over the pixels of a tile where a lane has a whole column of a quadrant (WHOLE_COLUMNS), in a fixed order that does not know the subgroup size:
// the column from top to bottom, columns in a binary tree of neighbours (1, 2, 4 apart), then quadrants. Subgroups hand their part of the tree to the
// others through shared memory. Every lane gets the subgroup's sums; the lane whose splat it is keeps them until the subgroup has seen as many splats
// as it has lanes: a store to memory costs software Vulkan a step for every lane, an exchange between lanes one for all.
#ifndef COLUMN_SUM_GLSL
#define COLUMN_SUM_GLSL

// Sums of a splat over pixels, q being dL/dsigma and d = mean2d - pixel centre.
struct TileSums {
    float q;
    vec2 qd;
    vec3 qdd;           // q dx dx, q dx dy, q dy dy
    vec3 color;
    vec2 abs_mean2d;    // with ABSGRAD
};

TileSums no_sums() { return TileSums(0.0, vec2(0.0), vec3(0.0), vec3(0.0), vec2(0.0)); }

TileSums add_sums(TileSums a, TileSums b) {
    return TileSums(a.q + b.q, a.qd + b.qd, a.qdd + b.qdd, a.color + b.color, a.abs_mean2d + b.abs_mean2d);
}

// The sums of the lane so many places away.
TileSums neighbours_sums(TileSums s, uint distance) {
    return TileSums(subgroupShuffleXor(s.q, distance), subgroupShuffleXor(s.qd, distance), subgroupShuffleXor(s.qdd, distance),
        subgroupShuffleXor(s.color, distance), ABSGRAD ? subgroupShuffleXor(s.abs_mean2d, distance) : vec2(0.0));
}

// Adds a splat's columns over the subgroup, dx being that of the lane's column; lane j keeps the sums. All lanes of the subgroup call it.
void keep_sums(inout TileSums kept, ColumnSums s, float dx, vec2 abs_mean2d, uint j) {
    float x = dx * s.q;
    TileSums t = TileSums(s.q, vec2(x, s.y), vec3(dx * x, dx * s.y, s.yy), s.color, abs_mean2d);
    t = add_sums(t, neighbours_sums(t, 1u));
    t = add_sums(t, neighbours_sums(t, 2u));
    if (SUBGROUP_SIZE > 4u) t = add_sums(t, neighbours_sums(t, 4u));
    if (SUBGROUP_SIZE > 8u) t = add_sums(t, neighbours_sums(t, 8u));
    if (SUBGROUP_SIZE > 16u) t = add_sums(t, neighbours_sums(t, 16u));
    if (gl_SubgroupInvocationID == j) kept = t;
}

// Stores the subgroup's part of the sums of the splats from number `first` of the round on, a lane each.
void store_kept(TileSums s, uint first) {
    uint at = ((first + gl_SubgroupInvocationID) * N_PARTS + gl_SubgroupID) * PART_SUMS;
    s_parts[at] = s.q;
    for (uint i = 0u; i < 2u; i++) s_parts[at + 1u + i] = s.qd[i];
    for (uint i = 0u; i < 3u; i++) s_parts[at + 3u + i] = s.qdd[i];
    for (uint i = 0u; i < 3u; i++) s_parts[at + 6u + i] = s.color[i];
    if (ABSGRAD)
        for (uint i = 0u; i < 2u; i++) s_parts[at + 9u + i] = s.abs_mean2d[i];
}

// The sum of the subgroups' parts, the first of which is at `at`. No zero is negative: what parts of zero sign depends on which subgroups the splat misses.
float parts_sum(uint at) {
    precise float sum = N_PARTS == 1u ? part(at, 0u) : N_PARTS == 2u ? sum2(at, 0u) : N_PARTS == 4u ? sum4(at, 0u) : sum8(at, 0u);
    return sum == 0.0 ? 0.0 : sum;
}

// The sums of splat j of the round over the whole tile.
TileSums take_kept(uint j) {
    uint at = j * N_PARTS * PART_SUMS;
    TileSums s = no_sums();
    s.q = parts_sum(at);
    for (uint i = 0u; i < 2u; i++) s.qd[i] = parts_sum(at + 1u + i);
    for (uint i = 0u; i < 3u; i++) s.qdd[i] = parts_sum(at + 3u + i);
    for (uint i = 0u; i < 3u; i++) s.color[i] = parts_sum(at + 6u + i);
    if (ABSGRAD)
        for (uint i = 0u; i < 2u; i++) s.abs_mean2d[i] = parts_sum(at + 9u + i);
    return s;
}

#endif
