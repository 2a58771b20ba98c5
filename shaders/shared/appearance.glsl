// How a camera changes a picture: exposure, vignetting and white balance, in this order (PPISP, arXiv 2601.18336, CVPR
// 2026, without its response curve). Numbers of a photo (`Appearance` in params.glsl):
//   [0]      exposure e: rgb *= 2^e
//   [1..8]   white balance: latents of the offsets of four chromaticities, of blue, red, green and neutral
//   [9..23]  vignetting, for each channel: centre x, y and a1, a2, a3; rgb *= 1 + a1 q + a2 q^2 + a3 q^3, q the squared
//            distance from the centre, in units of the longer side
#ifndef APPEARANCE_GLSL
#define APPEARANCE_GLSL
#include "params.glsl"

// Gradients that a tile sums up: by e, by the nine numbers of `Correction.colour`, two that are not used, and by
// vignetting's fifteen.
const uint V_COLOUR = 1u;
const uint V_VIGNETTING = 12u;

// Below this brightness (sum of channels) a pixel has no chromaticity to change.
const float LEAST_BRIGHTNESS = 1e-5;

// What takes two latents to the offset of a chromaticity (r, g), for blue, red, green and neutral: roots of covariances
// over photos, by PPISP. Rows; the blocks are symmetric.
const mat2 CHROMATICITY_SCALE[4] = mat2[](mat2(0.0480542, -0.0043631, -0.0043631, 0.0481283),
                                          mat2(0.0580570, -0.0179872, -0.0179872, 0.0431061),
                                          mat2(0.0433336, -0.0180537, -0.0180537, 0.0580500),
                                          mat2(0.0128369, -0.0034654, -0.0034654, 0.0128158));
const vec2 CHROMATICITIES[4] = vec2[](vec2(0.0, 0.0), vec2(1.0, 0.0), vec2(0.0, 1.0), vec2(1.0 / 3.0, 1.0 / 3.0));

float determinant3(vec3 a, vec3 b, vec3 c) { return dot(a, cross(b, c)); }

// The colour (r, g, b) of brightness 1 with chromaticity (r, g); linear in homogeneous coordinates.
vec3 colour_at(vec3 t) { return vec3(t.xy, t.z - t.x - t.y); }

// The white balance: the matrix on (r, g, b) that moves the four chromaticities, up to what restores the brightness of
// the pixel, and its derivative by latent k. The homography's columns are the targets of red, green and blue, times
// what takes neutral to its own target (Cramer's rule). Targets that lie in a line have no homography: they give the
// identity.
void colour_of(float latents[8], uint k, out mat3 colour, out mat3 tangent) {
    vec3 t[4], d[4];
    for (uint i = 0u; i < 4u; i++) {
        t[i] = vec3(CHROMATICITIES[i] + CHROMATICITY_SCALE[i] * vec2(latents[2u * i], latents[2u * i + 1u]), 1.0);
        d[i] = k / 2u == i ? vec3(CHROMATICITY_SCALE[i][k % 2u], 0.0) : vec3(0.0);
    }
    vec3 w = vec3(determinant3(t[0], t[3], t[2]), determinant3(t[0], t[1], t[3]), determinant3(t[3], t[1], t[2]));
    vec3 dw = vec3(
        determinant3(d[0], t[3], t[2]) + determinant3(t[0], d[3], t[2]) + determinant3(t[0], t[3], d[2]),
        determinant3(d[0], t[1], t[3]) + determinant3(t[0], d[1], t[3]) + determinant3(t[0], t[1], d[3]),
        determinant3(d[3], t[1], t[2]) + determinant3(t[3], d[1], t[2]) + determinant3(t[3], t[1], d[2]));
    colour = mat3(1.0);
    tangent = mat3(0.0);
    if (!(w.z > 1e-3)) return;  // 1/3 for the identity
    vec2 s = w.xy / w.z;
    vec2 ds = (dw.xy - s * dw.z) / w.z;
    colour = mat3(s.x * colour_at(t[1]), s.y * colour_at(t[2]), colour_at(t[0]));
    tangent = mat3(ds.x * colour_at(t[1]) + s.x * colour_at(d[1]), ds.y * colour_at(t[2]) + s.y * colour_at(d[2]),
                   colour_at(d[0]));
}
#endif
