// What the kernels share that match descriptors of photos. A descriptor is 128 bytes, so a dot product is a whole
// number below 2^23. Descriptors lie in tiles of MATCH_TILE; those that fill up the last tile of a photo are zero.
#ifndef MATCH_GLSL
#define MATCH_GLSL

const uint MATCH_TILE = 128u;
const uint MATCH_ONE = 262144u;         // dot product of a descriptor with itself: 512^2
const uint MATCH_NONE = 0xFFFFFFFFu;    // no match

// MatchJob is a pair of photos.
struct MatchJob {
    uint first_a;       // tile of the first photo's descriptors, the largest features first
    uint tiles_a;
    uint first_b;       // the same of the second photo
    uint tiles_b;
    uint first_keys;    // in nearest_keys, by 2 MATCH_TILE: room for tiles_a tiles_b of them
    uint first_match;   // in matches
    uint planar;        // 1: guide is a homography; 0: a fundamental matrix
    float limit;        // square of the distance that the guide allows, in pixels
    float guide[9];     // row by row: from the first photo to the second
};

// A key is a dot product and a descriptor's place in its tile: the larger product, then the smaller place is the
// larger key.
uint match_key(uint product, uint place) {
    return product << 7u | (MATCH_TILE - 1u - place);
}
uint key_product(uint key) {
    return key >> 7u;
}
uint key_place(uint key) {
    return MATCH_TILE - 1u - (key & (MATCH_TILE - 1u));
}

// The two largest keys, of which x is the larger.
uvec2 larger_two(uvec2 two, uint key) {
    return uvec2(max(two.x, key), max(two.y, min(two.x, key)));
}

#endif
