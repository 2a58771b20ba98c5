// Rows of feature maps that a band of a picture makes, for the kernels of LPIPS. A map is taller than what is in memory
// of it: row y of a map of C channels is row y % ring of a buffer [ring][C][width], so that the rows that later bands
// need of earlier ones stay where they are.
#ifndef BANDS_GLSL
#define BANDS_GLSL

struct MapRows {
    uint first;     // row of the whole map that the band makes first
    uint count;     // rows that it makes
};

#endif
