// SIFT (Lowe 2004), with the choices of VLFeat that COLMAP uses. An octave is SIFT_LEVELS pictures of one size, each
// blurred 2^(1/3) times as much as the one before. Devices have a band of rows of it at a time.
#ifndef SIFT_GLSL
#define SIFT_GLSL

const uint SIFT_LEVELS = 6u;
// A workgroup of sift_extrema looks at SIFT_TILE_X x SIFT_TILE_Y pixels of three levels, and keeps at most SIFT_SLOTS
// extrema. Fewer than a pixel in 25 is one, even of noise.
const uint SIFT_TILE_X = 32u;
const uint SIFT_TILE_Y = 16u;
const uint SIFT_SLOTS = 32u;
// Histograms are sums of whole numbers of 1 / SIFT_ONE: no order of additions shows. At most 300 is added up.
const float SIFT_ONE = 8388608.0;

const float SIFT_SIGMA = 1.6;   // of level 0, in pixels of its octave
const float TAU = 6.283185307;

struct SiftPoint {
    float x;        // pixels of the octave; the centre of the first one is at 0
    float y;
    float level;    // between levels
    uint nearest;   // the level whose gradients describe it
};

// A band of rows of an octave: levels are [SIFT_LEVELS][rows][pitch].
struct SiftBand {
    uint width;
    uint height;    // of the octave
    uint pitch;
    uint first;     // row of the octave that is the first here
    uint rows;
};

// The points of a band.
struct SiftRun {
    uint orient[3];     // workgroups of sift_orient
    uint describe[3];   // and of sift_describe
    uint first;
    uint n;
};

// Standard deviation of the blur at a level, in pixels of the octave.
float sigma_of(float level) {
    return SIFT_SIGMA * exp2(level / 3.0);
}

#endif
