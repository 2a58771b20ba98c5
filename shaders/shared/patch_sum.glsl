// Sums over the pixels of a tile in a fixed order that does not know the subgroup size: a lane's pixels one after the
// other, then the lanes of a list in a binary tree of neighbours (1, 2, 4, 8, 16 apart), then the lists in another.
//
// All sums of a splat go up the tree at once: at each level a lane keeps half of them and hands the other half to its
// neighbour, so that twelve exchanges do what 45 would (a transposed reduction). Lane l of eight is left with sum l;
// the ninth goes up in all, until one of two rows of lanes takes it. Subgroups of 4 are left with two sums a lane. What
// is left of the tree where a subgroup is less than a list's lanes is in shared memory, with that of the lists.
#ifndef PATCH_SUM_GLSL
#define PATCH_SUM_GLSL

// Sums beside the components of a ProjectedGrad: absolute gradients of the mean, and with DEPTH, that by the inverse of
// the splat's depth.
#ifdef DEPTH
#define BESIDE vec3
const uint SUMS = 9u + 3u;
#else
#define BESIDE vec2
const uint SUMS = 9u + (ABSGRAD ? 2u : 0u);
#endif
const uint PARTS = LANES / CLUSTER;                   // of a tile's sum
shared float s_parts[ROUND * PARTS * SUMS];
shared uint s_summed[PARTS];                        // bit k: the part has a sum of splat k of the round

// A lane's half of a pair of sums, with its neighbour's share added.
float exchange(float low, float high, bool upper, uint distance) {
    return (upper ? high : low) + subgroupShuffleXor(upper ? low : high, distance);
}

float both(float x, uint distance) { return x + subgroupShuffleXor(x, distance); }

// Sums a cluster's columns and, if `keep`, stores them as the part's of splat j of the round. All lanes of the subgroup
// call it.
void store_sums(float sums[9], BESIDE besides, uint j, bool keep) {
    uint lane = gl_SubgroupInvocationID, part = cluster_number();
    bvec3 upper = notEqual(uvec3(lane) & uvec3(1u, 2u, 4u), uvec3(0u));
    float a[5], b[3];
    for (uint i = 0u; i < 4u; i++) a[i] = exchange(sums[2u * i], sums[2u * i + 1u], upper.x, 1u);
    a[4] = both(sums[8], 1u);
    for (uint i = 0u; i < 2u; i++) b[i] = exchange(a[2u * i], a[2u * i + 1u], upper.y, 2u);
    b[2] = both(a[4], 2u);
    uint at = (j * PARTS + part) * SUMS + lane % CLUSTER;
    if (CLUSTER >= 8u) {
        b[0] = exchange(b[0], b[1], upper.z, 4u);
        b[2] = both(b[2], 4u);
    }
    // From here on lane 8 of 16 has the ninth.
    if (CLUSTER >= 16u) b[0] = exchange(b[0], b[2], (lane & 8u) != 0u, 8u);
    for (uint distance = 16u; distance < CLUSTER; distance *= 2u) b[0] = both(b[0], distance);
    if (keep) {
        if (lane % CLUSTER < (CLUSTER >= 16u ? 9u : 8u)) s_parts[at] = b[0];
        if (CLUSTER < 8u) s_parts[at + 4u] = b[1];
        if (CLUSTER < 16u && lane % CLUSTER == 0u) s_parts[at + 8u] = b[2];
    }
    if (ABSGRAD) {
        float c = both(exchange(besides.x, besides.y, upper.x, 1u), 2u);
        for (uint distance = 4u; distance < CLUSTER; distance *= 2u) c = both(c, distance);
        if (keep && lane % CLUSTER < 2u) s_parts[at + 9u] = c;
    }
#ifdef DEPTH
    float d = besides.z;
    for (uint distance = 1u; distance < CLUSTER; distance *= 2u) d = both(d, distance);
    if (keep && lane % CLUSTER == 0u) {
        s_parts[at + 11u] = d;
        if (!ABSGRAD) s_parts[at + 9u] = s_parts[at + 10u] = 0.0;
    }
#endif
}

// Sum i of splat j of the round over part p, if it has one.
float part_sum(uint j, uint p, uint i) {
    return (s_summed[p] >> j & 1u) != 0u ? s_parts[(j * PARTS + p) * SUMS + i] : 0.0;
}

float sum2(uint j, uint p, uint i) { return part_sum(j, p, i) + part_sum(j, p + 1u, i); }
float sum4(uint j, uint p, uint i) { return sum2(j, p, i) + sum2(j, p + 2u, i); }
float sum8(uint j, uint p, uint i) { return sum4(j, p, i) + sum4(j, p + 4u, i); }
float sum16(uint j, uint p, uint i) { return sum8(j, p, i) + sum8(j, p + 8u, i); }

// Sum i of splat j of the round over the whole tile.
float tile_sum(uint j, uint i) {
    float total = PARTS == 2u ? sum2(j, 0u, i) : PARTS == 4u ? sum4(j, 0u, i) : PARTS == 8u ? sum8(j, 0u, i) :
                      sum16(j, 0u, i);
    return total == 0.0 ? 0.0 : total;  // no zero is negative: whether parts are depends on which of them there are
}

#endif
