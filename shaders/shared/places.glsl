// Places of the scene.
#ifndef PLACES_GLSL
#define PLACES_GLSL
#include "const.glsl"

const uint ROW_SQUARES = TILE_SIZE / SQUARE;    // squares in a row of a tile

// Place in its tile of a square's first pixel.
uvec2 square_corner(uint square) {
    uint s = square % TILE_SQUARES;
    return SQUARE * uvec2(s % ROW_SQUARES, s / ROW_SQUARES);
}

uint stir(uint x) {
    x ^= x >> 16u;
    x *= 0x7FEB352Du;
    x ^= x >> 15u;
    x *= 0x846CA68Bu;
    return x ^ x >> 16u;
}

// The word of a history for the cube that a point lies in, where a pixel is so wide. A cube's width is a power of two.
uint place_of(vec3 point, float pixel) {
    int level = int(round(log2(PLACE_PIXELS * pixel)));
    ivec3 cube = ivec3(floor(point * exp2(-float(level))));
    uint h = stir(uint(level));
    h = stir(h ^ uint(cube.x));
    h = stir(h ^ uint(cube.y));
    return stir(h ^ uint(cube.z)) % (HISTORY_WORDS - 2u) + 2u;
}

#endif
