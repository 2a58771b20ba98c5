// The photo, read in one place. The includer declares `params`, `target`, TARGET_FLOAT, PACKED, MASKED and SHRUNK.
// `target` holds the photo's own pixels, here called texels, from word params.photo_offset on, and, with PHOTO_MASKED,
// the mask from the next word on: bit i % 32 of word i / 32 says whether texel i counts. Without SHRUNK the view has a
// pixel for each texel. With it a pixel is the mean of 2^params.level x 2^params.level of them, colours as they are
// stored; texels that are left over at the right and at the bottom are not looked at.

uint photo_word(uint i) { return target[params[0].photo_offset + i]; }

bool is_packed() { return PACKED && (params[0].photo_flags & PHOTO_PACKED) != 0u; }

// RGBA8, or the three bytes of a packed photo's texel, which is opaque and may lie in two words; a photo is followed
// by another word of any value. Without branches, so that an invocation's loads do not wait for each other.
vec4 texel(uint i) {
    if (!PACKED) return unpackUnorm4x8(photo_word(i));
    bool whole = !is_packed();
    uint word = whole ? i : 3u * i / 4u, shift = whole ? 0u : 8u * (3u * i % 4u);
    uint low = photo_word(word), high = photo_word(word + (whole ? 0u : 1u));
    vec4 c = unpackUnorm4x8(low >> shift | high << 1u << (31u - shift));
    return vec4(c.rgb, whole ? c.a : 1.0);
}

// Straight alpha over the background; an opaque photo is read exactly.
vec3 texel_color(uint i, vec3 background) {
    if (TARGET_FLOAT)
        return vec3(uintBitsToFloat(photo_word(3u * i)), uintBitsToFloat(photo_word(3u * i + 1u)),
                    uintBitsToFloat(photo_word(3u * i + 2u)));
    vec4 c = texel(i);
    return mix(c.rgb * c.a + background * (1.0 - c.a), c.rgb, bvec3(c.a == 1.0));
}

// The photo's alpha; a float32 photo is opaque.
float texel_alpha(uint i) { return TARGET_FLOAT ? 1.0 : texel(i).a; }

bool texel_counts(uint texel, uint n_texels) {
    uint first = TARGET_FLOAT ? 3u * n_texels : is_packed() ? (3u * n_texels + 3u) / 4u : n_texels;
    return ((photo_word(first + (texel >> 5)) >> (texel & 31u)) & 1u) != 0u;
}

// Pixels are texels: always without SHRUNK, and in photos that are too small to be shrunk.
bool full_size() { return !SHRUNK || params[0].level == 0u; }

uint first_texel(ivec2 p) {
    uvec2 corner = uvec2(p) << params[0].level;
    return corner.y * params[0].photo_width + corner.x;
}

// What a pixel is compared with: p, which is number `pixel` of the view. Texels are read four at a time, so that their
// loads do not wait for each other, and added in a fixed order.
vec3 target_color(ivec2 p, uint pixel, vec3 background) {
    if (full_size()) return texel_color(pixel, background);
    uint first = first_texel(p), width = params[0].photo_width, side = 1u << params[0].level;
    vec3 sum = vec3(0.0);
    for (uint y = 0u; y < side; y += 2u)
        for (uint x = 0u; x < side; x += 2u) {
            uint at = first + y * width + x;
            sum += (texel_color(at, background) + texel_color(at + 1u, background)) +
                (texel_color(at + width, background) + texel_color(at + width + 1u, background));
        }
    return sum * ldexp(1.0, -2 * int(params[0].level));
}

float target_alpha(ivec2 p, uint pixel) {
    if (full_size()) return texel_alpha(pixel);
    uint first = first_texel(p), width = params[0].photo_width, side = 1u << params[0].level;
    float sum = 0.0;
    for (uint y = 0u; y < side; y += 2u)
        for (uint x = 0u; x < side; x += 2u) {
            uint at = first + y * width + x;
            sum += (texel_alpha(at) + texel_alpha(at + 1u)) + (texel_alpha(at + width) + texel_alpha(at + width + 1u));
        }
    return sum * ldexp(1.0, -2 * int(params[0].level));
}

// A pixel counts where all of its texels do: what a mask leaves out must not shine through, and the number of pixels
// that count stays whole.
bool photo_counts(ivec2 p, uint pixel, uint n_pixels) {
    if (!MASKED || (params[0].photo_flags & PHOTO_MASKED) == 0u) return true;
    if (full_size()) return texel_counts(pixel, n_pixels);
    uint first = first_texel(p), width = params[0].photo_width, side = 1u << params[0].level;
    bool all_count = true;
    for (uint y = 0u; y < side; y++)
        for (uint x = 0u; x < side; x++)
            all_count = all_count && texel_counts(first + y * width + x, width * params[0].photo_height);
    return all_count;
}
