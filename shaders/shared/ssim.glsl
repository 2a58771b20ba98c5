// The loss of 3DGS: (1 - lambda) L1 + lambda (1 - SSIM), SSIM with an 11x11 Gaussian window of sigma 1.5 (Wang et al.
// 2004), per channel, zero padding. With `huber`, L1 is quadratic near 0 (Huber 1964).
#ifndef SSIM_GLSL
#define SSIM_GLSL
#include "params.glsl"

const int SSIM_RADIUS = 5;
const int SSIM_TAPS = 2 * SSIM_RADIUS + 1;
const int TILE = int(TILE_SIZE);
const int HALO = TILE + 2 * SSIM_RADIUS;    // side of a tile with its border
const int HALO_AREA = HALO * HALO;
// A workgroup of loss and loss_grad does one tile. An invocation loads up to LOADS pixels of the tile with its border,
// blurs a run of RUN neighbours along x, so that what it reads from shared memory serves several of them, and then RISE
// pixels of a column along y: these are its own.
const int LANES = 128;
const int LOADS = (HALO_AREA + LANES - 1) / LANES;
const int RUN = 4;
const int RUNS = TILE / RUN;
const int RISE = TILE * TILE / LANES;
// Rows in shared memory are so far apart that the invocations of a subgroup seldom meet in a bank.
const int HALO_PITCH = 29;
const int BLUR_PITCH = 20;

// What a difference d of colour adds to the loss, and its slope: those of L1, or with h > 0 a parabola below h.
float color_loss(float d, float h) {
    float a = abs(d);
    return a < h ? 0.5 * a * a / h : a - 0.5 * h;
}
float color_slope(float d, float h) { return h > 0.0 ? clamp(d / h, -1.0, 1.0) : sign(d); }

// Where the j-th pixel of the border's square lies, counted from the square's corner, and in shared memory.
ivec2 halo_pixel(int j) { return ivec2(j % HALO, j / HALO); }
int halo_at(int j) { return j / HALO * HALO_PITCH + j % HALO; }

// Pixel k of run r of a row is kept at k RUNS + r, so that neighbouring runs write to neighbouring places. This gives
// the column that is kept at `place`, and the other way round.
int run_column(int place) { return place % RUNS * RUN + place / RUNS; }

float ssim_weight(int d) {
    // exp(-d^2 / 4.5), normalised over d = -5..5
    const float w[6] = float[](0.2660117248617943, 0.21300553771125366, 0.1093606895097,
        0.03600077212843082, 0.007598758135239184, 0.0010283800844791099);
    return w[abs(d)];
}

// Windows that count: all of them, or only those inside the image.
bool window_counts(View v, bool same, ivec2 p) {
    if (p.x < 0 || p.y < 0 || p.x >= int(v.width) || p.y >= int(v.height)) return false;
    return same || (p.x >= SSIM_RADIUS && p.y >= SSIM_RADIUS &&
        p.x < int(v.width) - SSIM_RADIUS && p.y < int(v.height) - SSIM_RADIUS);
}

// Number of (window, channel) terms of the mean.
float window_terms(View v, bool same) {
    vec2 size = vec2(v.width, v.height) - (same ? 0.0 : float(2 * SSIM_RADIUS));
    return max(1.0, 3.0 * max(size.x, 0.0) * max(size.y, 0.0));
}

#endif
