// Which pixels of a view count where find_outliers has said so: a bit each, tile by tile.
#ifndef COUNTS_GLSL
#define COUNTS_GLSL

// The word and the bit of pixel p.
uvec2 count_bit(ivec2 p, uint tile_width) {
    uvec2 q = uvec2(p);
    uint tile = q.y / TILE_SIZE * tile_width + q.x / TILE_SIZE, i = q.y % TILE_SIZE * TILE_SIZE + q.x % TILE_SIZE;
    return uvec2(COUNT_WORDS * tile + i / 32u, i % 32u);
}

#endif
