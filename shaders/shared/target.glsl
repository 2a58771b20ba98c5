// The photo, read in one place. The includer declares `params`, `target`, TARGET_FLOAT, PACKED and MASKED.
// `target` holds the pixels and, with PHOTO_MASKED, the mask from the next word on: bit i % 32 of word i / 32 says whether pixel i counts.

bool is_packed() { return PACKED && (params[0].photo_flags & PHOTO_PACKED) != 0u; }

// The three bytes of a pixel of a packed photo, which may lie in two words. There is a word more than photos take.
vec3 packed_color(uint pixel) {
    uint word = 3u * pixel / 4u, shift = 8u * (3u * pixel % 4u);
    return unpackUnorm4x8(target[word] >> shift | target[word + 1u] << 1u << (31u - shift)).rgb;
}

// RGBA8: straight alpha over the background; an opaque photo is read exactly.
vec3 target_color(uint pixel, vec3 background) {
    if (TARGET_FLOAT) return vec3(uintBitsToFloat(target[3u * pixel]), uintBitsToFloat(target[3u * pixel + 1u]), uintBitsToFloat(target[3u * pixel + 2u]));
    if (is_packed()) return packed_color(pixel);
    vec4 c = unpackUnorm4x8(target[pixel]);
    return mix(c.rgb * c.a + background * (1.0 - c.a), c.rgb, bvec3(c.a == 1.0));
}

// The photo's alpha; float32 and packed photos are opaque.
float target_alpha(uint pixel) {
    return TARGET_FLOAT || is_packed() ? 1.0 : unpackUnorm4x8(target[pixel]).a;
}

bool pixel_counts(uint pixel, uint n_pixels) {
    if (!MASKED || (params[0].photo_flags & PHOTO_MASKED) == 0u) return true;
    uint first = TARGET_FLOAT ? 3u * n_pixels : is_packed() ? (3u * n_pixels + 3u) / 4u : n_pixels;
    return ((target[first + (pixel >> 5)] >> (pixel & 31u)) & 1u) != 0u;
}
