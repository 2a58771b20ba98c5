// Philox4x32-10 (Salmon et al. 2011): a random number is a function of (seed, step, splat, draw) and of nothing else.
#ifndef PHILOX_GLSL
#define PHILOX_GLSL

uvec4 philox(uvec4 counter, uvec2 key) {
    for (uint round = 0u; round < 10u; round++) {
        uint hi0, lo0, hi1, lo1;
        umulExtended(0xD2511F53u, counter.x, hi0, lo0);
        umulExtended(0xCD9E8D57u, counter.z, hi1, lo1);
        counter = uvec4(hi1 ^ counter.y ^ key.x, lo1, hi0 ^ counter.w ^ key.y, lo0);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

// Two normal samples from two words (Box and Muller 1958). The uniform inside the logarithm is in (0, 1]. Near 1,
// Vulkan lets a logarithm be off by 2^-21, and so be above 0.
vec2 normal_pair(uint a, uint b) {
    float u = (float(a) + 0.5) * 2.3283064365386963e-10;
    float phi = 6.283185307179586 * (float(b) * 2.3283064365386963e-10);
    float r = sqrt(max(-2.0 * log(u), 0.0));
    return vec2(r * cos(phi), r * sin(phi));
}

#endif
