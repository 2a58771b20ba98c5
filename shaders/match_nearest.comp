#version 460
#extension GL_EXT_scalar_block_layout : require
#extension GL_GOOGLE_include_directive : require
// match_nearest finds the nearest of the other photo's descriptors, of what match_tiles has found tile by tile, where
// it is near enough and nearer than the second by the ratio that is asked.
//   reads jobs nearest_keys least_products; writes matches
// One workgroup a tile of either photo, one invocation a descriptor. Of equally near ones the first is taken.
#include "match.glsl"

layout(local_size_x = 128) in;

layout(binding = 0, scalar) readonly buffer Jobs { MatchJob jobs[]; };          // [pairs]
layout(binding = 1, scalar) readonly buffer Keys { uvec2 nearest_keys[]; };     // as match_tiles leaves them
// [MATCH_ONE] by the second largest product: the least that the largest must be. Nothing is nearer than MATCH_ONE.
layout(binding = 2, scalar) readonly buffer Least { uint least_products[]; };
// By pair: [tiles_a][MATCH_TILE] descriptors of the second photo, then [tiles_b][MATCH_TILE] of the first; or
// MATCH_NONE
layout(binding = 3, scalar) writeonly buffer Matches { uint matches[]; };

void main() {
    MatchJob job = jobs[gl_WorkGroupID.y];
    uint tile = gl_WorkGroupID.x;
    if (tile >= job.tiles_a + job.tiles_b) return;
    bool of_a = tile < job.tiles_a;
    uint tiles = of_a ? job.tiles_a : job.tiles_b, others = of_a ? job.tiles_b : job.tiles_a;
    uint at = job.first_keys * 2u * MATCH_TILE + gl_LocalInvocationID.x +
        (of_a ? tile : job.tiles_a * job.tiles_b + tile - job.tiles_a) * MATCH_TILE;
    uint most = 0u, second = 0u, nearest = MATCH_NONE;
    for (uint other = 0u; other < others; other++, at += tiles * MATCH_TILE) {
        uvec2 keys = nearest_keys[at];
        uint product = key_product(keys.x);
        if (product > most) {
            second = max(most, key_product(keys.y));
            most = product;
            nearest = other * MATCH_TILE + key_place(keys.x);
        } else {
            second = max(second, product);
        }
    }
    matches[job.first_match + tile * MATCH_TILE + gl_LocalInvocationID.x] =
        second < MATCH_ONE && most >= least_products[second] ? nearest : MATCH_NONE;
}
