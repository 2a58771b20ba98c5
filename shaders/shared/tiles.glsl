// Which tiles a splat can touch. count_tiles, emit_isects and reduce_slots must agree on every tile, so they call these
// functions, on the same stored numbers, with `precise` arithmetic that no compiler may contract differently in one of
// them.
#ifndef TILES_GLSL
#define TILES_GLSL
#include "const.glsl"

// Geometry of a projected splat.
struct Shape {
    vec2 mean2d;    // px
    vec3 conic;     // inverse 2D covariance xx, xy, yy, px^-2
    // of the ellipse at which alpha falls to the threshold: largest |dx|, largest |dy|, half its width along dy = 0, px
    vec3 extents;
};

// A shape as memory has it; shape.glsl reads it.
vec4[2] shape_words(Shape s) { return vec4[2](vec4(s.mean2d, s.conic.xy), vec4(s.conic.z, s.extents)); }

// Tile column or row number whose first pixel centre is the first at or after p: pixel centres of tile k span
// [16 k + 0.5, 16 k + 15.5].
ivec2 tile_interval(float lo, float hi, uint n_tiles) {
    precise float first = ceil((lo - 15.5) * 0.0625);
    precise float last = floor((hi - 0.5) * 0.0625);
    // Clamped as floats: int() of something out of range is undefined. A NaN gives an empty interval.
    if (!(last >= first && last >= 0.0 && first < float(n_tiles))) return ivec2(0);
    return ivec2(int(max(first, 0.0)), int(min(last, float(n_tiles) - 1.0)) + 1);
}

// Rows [x, y) of tiles.
ivec2 tile_rows(vec2 mean2d, vec3 extents, uint tile_height) {
    return tile_interval(mean2d.y - extents.y, mean2d.y + extents.y, tile_height);
}

// Columns [x, y) of the tiles that the ellipse touches in one row of tiles: the ellipse is convex, so over the strip of
// pixel centres its right edge is the global rightmost point where the strip holds it, else the edge at the strip's end
// nearest to it; the left edge mirrors it.
ivec2 tile_columns(Shape s, int row, uint tile_width) {
    precise float y0 = float(row) * 16.0 + 0.5 - s.mean2d.y;
    precise float y1 = y0 + 15.0;
    precise float slope = -s.conic.y / s.conic.x;       // dx of the ellipse's centre line per dy
    // dy of the rightmost point; the leftmost is at -y_right
    precise float y_right = -(s.conic.y / s.conic.z) * s.extents.x;
    precise float yr = clamp(y_right, y0, y1);
    precise float yl = clamp(-y_right, y0, y1);
    precise float qr = yr / s.extents.y;
    precise float ql = yl / s.extents.y;
    precise float right = yr == y_right ? s.extents.x : slope * yr + s.extents.z * sqrt(max(0.0, 1.0 - qr * qr));
    precise float left = yl == -y_right ? -s.extents.x : slope * yl - s.extents.z * sqrt(max(0.0, 1.0 - ql * ql));
    return tile_interval(s.mean2d.x + left, s.mean2d.x + right, tile_width);
}

// Rows of tiles of band `band` of n_bands.
ivec2 band_rows(uint tile_height, uint band, uint n_bands) {
    return ivec2(int(tile_height * band / n_bands), int(tile_height * (band + 1u) / n_bands));
}

ivec2 clip_rows(ivec2 rows, ivec2 to) {
    return ivec2(max(rows.x, to.x), min(rows.y, to.y));
}

#endif
