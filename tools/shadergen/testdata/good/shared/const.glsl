// Shared constants.
#ifndef CONST_GLSL
#define CONST_GLSL
const uint TILE_SIZE = 16u; // px
const int LOWEST = -3;

// Blending.
const float ALPHA_THRESHOLD = 0.00392156862745098;
const float EPS = 1e-15f;
#endif
