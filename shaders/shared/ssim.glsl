// The loss of 3DGS: (1 - lambda) L1 + lambda (1 - SSIM), SSIM with an 11x11 Gaussian window of sigma 1.5 (Wang et al. 2004), per channel, zero padding.
#ifndef SSIM_GLSL
#define SSIM_GLSL
#include "params.glsl"

const int SSIM_RADIUS = 5;
const int HALO = int(TILE_SIZE) + 2 * SSIM_RADIUS;   // side of a tile with its border
const int HALO_AREA = HALO * HALO;
const int STRIP = HALO * int(TILE_SIZE);             // rows of the border, columns of the tile

float ssim_weight(int d) {
    // exp(-d^2 / 4.5), normalised over d = -5..5
    const float w[6] = float[](0.2660117248617943, 0.21300553771125366, 0.1093606895097, 0.03600077212843082, 0.007598758135239184, 0.0010283800844791099);
    return w[abs(d)];
}

// Windows that count: all of them, or only those inside the image.
bool window_counts(View v, bool same, ivec2 p) {
    if (p.x < 0 || p.y < 0 || p.x >= int(v.width) || p.y >= int(v.height)) return false;
    return same || (p.x >= SSIM_RADIUS && p.y >= SSIM_RADIUS && p.x < int(v.width) - SSIM_RADIUS && p.y < int(v.height) - SSIM_RADIUS);
}

// Number of (window, channel) terms of the mean.
float window_terms(View v, bool same) {
    vec2 size = vec2(v.width, v.height) - (same ? 0.0 : float(2 * SSIM_RADIUS));
    return max(1.0, 3.0 * max(size.x, 0.0) * max(size.y, 0.0));
}

#endif
