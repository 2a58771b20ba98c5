// The photo, read in one place. The includer declares `params`, `target`, TARGET_FLOAT and MASKED.
// `target` holds the pixels and, with params.masked, the mask after them: bit i % 32 of word i / 32 says whether pixel i counts.

// RGBA8: straight alpha over the background; an opaque photo is read exactly.
vec3 target_color(uint pixel, vec3 background) {
    if (TARGET_FLOAT) return vec3(uintBitsToFloat(target[3u * pixel]), uintBitsToFloat(target[3u * pixel + 1u]), uintBitsToFloat(target[3u * pixel + 2u]));
    vec4 c = unpackUnorm4x8(target[pixel]);
    return mix(c.rgb * c.a + background * (1.0 - c.a), c.rgb, bvec3(c.a == 1.0));
}

// The photo's alpha; a float32 photo is opaque.
float target_alpha(uint pixel) {
    return TARGET_FLOAT ? 1.0 : unpackUnorm4x8(target[pixel]).a;
}

bool pixel_counts(uint pixel, uint n_pixels) {
    if (!MASKED || params[0].masked == 0u) return true;
    uint first = TARGET_FLOAT ? 3u * n_pixels : n_pixels;
    return ((target[first + (pixel >> 5)] >> (pixel & 31u)) & 1u) != 0u;
}
